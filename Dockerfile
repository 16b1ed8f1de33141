# One static binary in an empty image: no shell, no package manager, a numeric user, nothing to write to but /data.
#
#   docker build -t durable-mcp .
#
# Whoever wants commands or stdio servers behind it (npx, uvx, ...) starts from an image that has them:
#
#   FROM node:22-slim
#   COPY --from=ghcr.io/durable-mcp/durable-mcp:0.1.0 /durable-mcp /usr/local/bin/durable-mcp
#   USER 65532:65532
#   ENTRYPOINT ["durable-mcp"]

FROM rust:1.95-bookworm AS build
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
RUN apt-get update \
    && apt-get install -y --no-install-recommends musl-tools=1.2.3-1 \
    && rm -rf /var/lib/apt/lists/* \
    && rustup target add "$(uname -m)-unknown-linux-musl"
WORKDIR /source
COPY . .
# `file` would say it too: a program that needs a loader or a library does not belong into an empty image.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/source/target \
    target="$(uname -m)-unknown-linux-musl" \
    && cargo build --release --locked --target "$target" --bin durable-mcp \
    && cp "target/$target/release/durable-mcp" /durable-mcp \
    && if readelf --program-headers --wide /durable-mcp | grep -q INTERP; then echo "not static" >&2; exit 1; fi \
    && mkdir --mode=0700 /data

FROM scratch
LABEL org.opencontainers.image.title="durable-mcp" \
      org.opencontainers.image.description="A durable execution layer for MCP tool calls" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="0.1.0" \
      io.modelcontextprotocol.server.name="io.github.durable-mcp/durable-mcp"
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /durable-mcp /durable-mcp
COPY --from=build --chown=65532:65532 /data /data
ENV DURABLE_MCP_DATA_DIR=/data
VOLUME ["/data"]
EXPOSE 7400
USER 65532:65532
# Asks the server of this very configuration for /readyz: not ready, draining or gone is unhealthy.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 CMD ["/durable-mcp", "doctor", "--ready"]
ENTRYPOINT ["/durable-mcp"]
CMD ["serve"]
