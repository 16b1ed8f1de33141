//! MCP servers we run or reach, and one connection ("leg") to each.
