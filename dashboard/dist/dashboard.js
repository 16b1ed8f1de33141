var n, t$1, u$1, i$1, f$2, o$2, e$1, l$1, c$1, a$2, h$1 = /* @__PURE__ */ Symbol.for("pv"), p$1 = {}, y$1 = [], v$1 = /^m(i|n|o|s|text|space)$/, w$1 = Array.isArray, d$1 = y$1.slice, _$1 = Object.assign;
function g$1(n2) {
  n2 && n2.parentNode && n2.remove();
}
function m$1(r2, u2, i2, f2, o2) {
  var e2 = { type: r2, props: u2, key: i2, ref: f2, __k: null, __: null, __b: 0, __e: null, __c: null, constructor: h$1, __v: o2 || ++t$1, __i: -1, __u: 0 };
  return !o2 && n.vnode && n.vnode(e2), e2;
}
function $(n2) {
  return n2.children;
}
function x(n2, t2) {
  this.props = n2, this.context = t2, this.__g = 0;
}
function S(n2, t2) {
  if (null == t2) return n2.__ && S(n2.__, n2.__i + 1);
  for (var r2; t2 < n2.__k.length; t2++) if ((r2 = n2.__k[t2]) && r2.__e) return r2.__e;
  return "function" != typeof n2.type || n2.props.__P ? null : S(n2);
}
function C$1(t2) {
  var r2, u2 = t2.__v, i2 = u2.__e, f2 = [], o2 = [], e2 = t2.__P;
  e2 && ((r2 = _$1({ constructor: h$1 }, u2)).__v = u2.__v + 1, n.vnode && n.vnode(r2), z$1(e2, r2, u2, t2.__n, e2.namespaceURI, 32 & u2.__u ? [i2] : null, f2, i2 || S(u2), 32 & u2.__u, o2), r2.__v = u2.__v, r2.__.__k[r2.__i] = r2, E$1(f2, r2, o2), u2.__ = u2.__e = null, r2.__e != i2 && j(r2));
}
function j(n2) {
  if ((n2 = n2.__) && n2.__c && !n2.props.__P) return n2.__e = null, n2.__k.some(function(t2) {
    return t2 && (n2.__e = t2.__e);
  }), j(n2);
}
function L(t2) {
  (8 & t2.__g || (t2.__g |= 8, u$1.push(t2), f$2++)) && i$1 == n.debounceRendering || ((i$1 = n.debounceRendering) || queueMicrotask)(H);
}
function H() {
  try {
    for (var n2, t2 = 1; u$1.length; ) u$1.length > t2 && u$1.sort(o$2), n2 = u$1.shift(), t2 = u$1.length, 8 & n2.__g && C$1(n2);
  } finally {
    (f$2 = u$1.length) && (i$1 || queueMicrotask)(H);
  }
}
function I(n2, t2, r2, u2, i2, f2, o2, e2, l2, c2, a2) {
  var s2, h2, v2, w2, d2, _2, g2 = u2.__k || y$1, k2 = t2.length;
  for (l2 = q(r2, t2, g2, l2, k2), s2 = 0; s2 < k2; s2++) null != (v2 = r2.__k[s2]) && (h2 = ~v2.__i && g2[v2.__i] || p$1, v2.__i = s2, _2 = z$1(n2, v2, h2, i2, f2, o2, e2, l2, c2, a2), w2 = v2.__e, (h2.ref != v2.ref || 8 & h2.__u) && (h2.ref && G$1(h2.ref, null, v2, h2), v2.ref && a2.push(v2.ref, v2.__c || w2, v2)), d2 = d2 || w2, 4 & v2.__u ? (l2 = A$1(v2, l2, n2, !h2.__v), h2.__e && (h2.__e = null)) : "function" == typeof v2.type && void 0 !== _2 ? l2 = _2 : w2 && (l2 = w2.nextSibling), v2.__u &= -21);
  return r2.__e = d2, l2;
}
function q(n2, t2, r2, u2, i2) {
  var f2, o2, e2, l2, c2, a2, s2, p2, y2, v2 = r2.length, d2 = v2, _2 = 0, g2 = 0, k2 = n2.__k = Array(i2);
  for (f2 = 0; f2 < i2; f2++) null != (o2 = t2[f2]) && "boolean" != typeof o2 && "function" != typeof o2 ? ("object" != typeof o2 || o2.constructor === String ? o2 = k2[f2] = m$1(null, o2) : w$1(o2) ? o2 = k2[f2] = m$1($, { children: o2 }) : o2.constructor === h$1 && o2.__b ? o2 = k2[f2] = m$1(o2.type, o2.props, o2.key, o2.ref, o2.__v) : k2[f2] = o2, l2 = f2 + _2, o2.__ = n2, o2.__b = n2.__b + 1, e2 = null, ~(c2 = o2.__i = P(o2, r2, l2, d2)) && (d2--, (e2 = r2[c2]) && (e2.__u |= 2)), e2 && e2.__v ? (o2.__u |= 16, c2 == l2 - 1 ? _2-- : c2 == l2 + 1 ? _2++ : c2 != l2 && (c2 > l2 ? _2-- : _2++, g2 = 1)) : (~c2 || (i2 > v2 ? _2-- : i2 < v2 && _2++), "function" != typeof o2.type && (o2.__u |= 4))) : k2[f2] = null;
  if (g2) {
    for (a2 = [], s2 = [], f2 = 0; f2 < i2; f2++) if ((o2 = k2[f2]) && 16 & o2.__u) {
      for (_2 = 0, p2 = a2.length; _2 < p2; ) a2[y2 = _2 + p2 >> 1] < o2.__i ? _2 = y2 + 1 : p2 = y2;
      a2[_2] = o2.__i, s2[f2] = _2 + 1;
    }
    for (_2 = a2.length; f2--; ) s2[f2] && (s2[f2] == _2 ? _2-- : k2[f2].__u |= 4);
  }
  if (d2) for (f2 = 0; f2 < v2; f2++) !(e2 = r2[f2]) || 2 & e2.__u || (e2.__e == u2 && (u2 = S(e2)), J(e2, e2));
  return u2;
}
function A$1(n2, t2, r2, u2) {
  var i2, f2, o2, e2;
  if ("function" == typeof n2.type) {
    if (n2.props.__P) return t2;
    if (i2 = n2.__k) for (f2 = 0; f2 < i2.length; f2++) i2[f2] && (i2[f2].__ = n2, t2 = A$1(i2[f2], t2, r2, false));
    return t2;
  }
  for (t2 && !t2.parentNode && (t2 = S(n2)) && !t2.parentNode && (t2 = null), o2 = n2.__e, e2 = t2; e2 && 8 == e2.nodeType; ) e2 = e2.nextSibling;
  for (o2 != e2 && (!u2 && r2.moveBefore && o2.parentNode ? r2.moveBefore(o2, t2) : r2.insertBefore(o2, t2 || null)), t2 = o2; (t2 = t2 && t2.nextSibling) && 8 == t2.nodeType && !t2.data.startsWith("$s"); ) ;
  return t2;
}
function P(n2, t2, r2, u2) {
  var i2, f2 = n2.key, o2 = n2.type, e2 = t2[r2], l2 = e2 && !(2 & e2.__u);
  if (null === e2 && null == f2 || l2 && f2 == e2.key && o2 == e2.type) return r2;
  if (u2 > (l2 ? 1 : 0)) {
    for (i2 = r2 - 1; i2 >= 0; i2--) if ((e2 = t2[i2]) && !(2 & e2.__u) && f2 == e2.key && o2 == e2.type) return i2;
    for (i2 = r2 + 1; i2 < t2.length; i2++) if ((e2 = t2[i2]) && !(2 & e2.__u) && f2 == e2.key && o2 == e2.type) return i2;
  }
  return -1;
}
function T$1(n2, t2, r2) {
  null == r2 && (r2 = ""), "-" == t2[0] ? n2.setProperty(t2, r2) : n2[t2] = r2;
}
function N(n2, t2, r2, u2, i2) {
  var f2, o2;
  if ("style" == t2) if ("string" == typeof r2) n2.style.cssText = r2;
  else {
    if ("string" == typeof u2 && (n2.style.cssText = u2 = ""), u2) for (t2 in u2) r2 && t2 in r2 || T$1(n2.style, t2);
    if (r2) for (t2 in r2) u2 && r2[t2] == u2[t2] || T$1(n2.style, t2, r2[t2]);
  }
  else if ("o" == t2[0] && "n" == t2[1]) "function" != typeof r2 && (r2 = null), "function" != typeof u2 && (u2 = null), (n2.__e || (n2.__e = {}))[t2] = r2, r2 && u2 || (o2 = a$2[t2] || (a$2[t2] = V(t2)), (n2.__a || (n2.__a = {}))[t2] = c$1, f2 = t2 != (t2 = t2.replace(l$1, "$1")), (t2 = t2.slice(2))[0] < "a" && (t2 = t2.toLowerCase()), r2 ? n2.addEventListener(t2, o2, f2) : n2.removeEventListener(t2, o2, f2));
  else {
    if ("http://www.w3.org/2000/svg" == i2) t2 = t2.replace(/xlink(H|:h)/, "h").replace(/sName$/, "s");
    else if ("width" != t2 && "height" != t2 && "href" != t2 && "list" != t2 && "form" != t2 && "tabIndex" != t2 && "download" != t2 && "rowSpan" != t2 && "colSpan" != t2 && "role" != t2 && "popover" != t2 && t2 in n2) try {
      return void (n2[t2] = null == r2 ? "" : r2);
    } catch (n3) {
    }
    if ("function" == typeof r2) return;
    null == r2 || false === r2 && "-" != t2[4] ? n2.removeAttribute(t2) : n2.setAttribute(t2, "popover" == t2 && 1 == r2 ? "" : r2);
  }
}
function V(t2) {
  return function(r2) {
    var u2 = this.__e;
    if (u2) {
      if (u2 = u2[t2], null == r2[e$1]) r2[e$1] = c$1++;
      else if (r2[e$1] < this.__a[t2]) return;
      return u2(n.event ? n.event(r2) : r2);
    }
  };
}
function z$1(t2, r2, u2, i2, f2, o2, e2, l2, c2, a2) {
  var s2, p2, v2, d2, k2, b2, m2, M, C2, j2, L2, H2, q2, A2, O, P2, T2, N2, V2 = r2.type;
  if (r2.constructor !== h$1) return null;
  128 & u2.__u && (c2 = 32 & u2.__u, s2 = u2.__c.__z) && (r2.__u |= c2, p2 = o2 = [], 8 == s2.nodeType ? l2 = B$1(s2, o2) : o2.push(s2), l2 = o2[0] || l2), (s2 = n.__b) && s2(r2);
  n: if ("function" == typeof V2) {
    v2 = e2.length;
    try {
      if (M = r2.props, C2 = (s2 = V2.prototype) && s2.render, j2 = (s2 = V2.contextType) && i2[s2.__c], L2 = s2 ? j2 ? j2.props.value : s2.__ : i2, (d2 = u2.__c) ? (r2.__c = d2, 2 & d2.__g && (d2.__g |= 1)) : (C2 ? r2.__c = d2 = new V2(M, L2) : (r2.__c = d2 = new x(M, L2), d2.constructor = V2, d2.render = K), j2 && j2.sub(d2), d2.state || (d2.state = {}), d2.__n = i2, d2.__g |= 8, d2.__h = [], d2.__k = []), C2 && (d2.__s || (d2.__s = d2.state), V2.getDerivedStateFromProps && (d2.__s == d2.state && (d2.__s = _$1({}, d2.__s)), _$1(d2.__s, V2.getDerivedStateFromProps(M, d2.__s)))), k2 = d2.props, b2 = d2.state, d2.__v = r2, u2.__c) {
        if (M !== k2 && C2 && !V2.getDerivedStateFromProps && d2.componentWillReceiveProps && d2.componentWillReceiveProps(M, L2), r2.__v == u2.__v && !(8 & d2.__g) || !(4 & d2.__g) && d2.shouldComponentUpdate && false === d2.shouldComponentUpdate(M, d2.__s, L2)) {
          r2.__v != u2.__v && (d2.props = M, d2.state = d2.__s, d2.__g &= -9), r2.__e = u2.__e, r2.__k = u2.__k, r2.__k.some(function(n2) {
            n2 && (n2.__ = r2);
          }), y$1.push.apply(d2.__h, d2.__k), d2.__k = [], d2.__h.length && e2.push(d2), l2 = S(u2);
          break n;
        }
        d2.componentWillUpdate && d2.componentWillUpdate(M, d2.__s, L2), C2 && d2.componentDidUpdate && d2.__h.push(function() {
          d2.componentDidUpdate(k2, b2, m2);
        });
      } else C2 && !V2.getDerivedStateFromProps && d2.componentWillMount && d2.componentWillMount(), C2 && d2.componentDidMount && d2.__h.push(d2.componentDidMount);
      d2.context = L2, d2.props = M, d2.__P = t2, d2.__g &= -5, H2 = n.__r, q2 = C2 ? 25 : 0;
      do {
        d2.__g &= -9, H2 && H2(r2), s2 = d2.render(d2.props, d2.state = d2.__s, d2.context);
      } while (8 & d2.__g && ++q2 < 25);
      C2 && (y$1.push.apply(d2.__h, d2.__k), d2.__k = []), d2.state = d2.__s, d2.getChildContext && (i2 = _$1({}, i2, d2.getChildContext())), C2 && u2.__c && d2.getSnapshotBeforeUpdate && (m2 = d2.getSnapshotBeforeUpdate(k2, b2)), A2 = s2 && s2.type === $ && null == s2.key ? s2.props.children : s2, M.__P && (s2 = l2, f2 = (t2 = M.__P).namespaceURI, c2 = o2 = null, u2.props && u2.props.__P != t2 && (u2.__k.some(function(n2) {
        n2 && J(n2, n2);
      }), u2.__k = null), l2 = u2.__k ? S(u2, 0) : null), l2 = I(t2, w$1(A2) ? A2 : [A2], r2, u2, i2, f2, o2, e2, l2, c2, a2), M.__P && (r2.__e = null, l2 = s2), r2.__u &= -161, p2 && p2.some(g$1), d2.__h.length && e2.push(d2), 1 & d2.__g && (d2.__g &= -4);
    } catch (t3) {
      if (e2.length = v2, r2.__v = null, c2 || o2) if (t3 && t3.then) {
        if (r2.__u |= 128 | c2, o2) {
          for (~(T2 = o2.indexOf(l2 || void 0)) || (T2 = o2.length); (N2 = o2[T2 - 1]) && 8 == N2.nodeType; ) T2--;
          for (; T2 < o2.length; T2++) if (N2 = o2[T2]) if (o2[T2] = null, O) {
            if (N2 == P2) break;
          } else {
            if (8 != N2.nodeType) break;
            N2.data.startsWith("$s") && (P2 = B$1(O = N2));
          }
        }
        if (!O) {
          for (; l2 && 8 == l2.nodeType && l2.nextSibling; ) l2 = l2.nextSibling;
          O = l2;
        }
        (s2 = B$1(O = r2.__c.__z || (r2.__c.__z = O))) ? (r2.__e = O, l2 = s2) : r2.__e = l2, l2 = l2 && l2.nextSibling;
      } else o2 && o2.some(g$1);
      else r2.__e = u2.__e;
      r2.__k || (r2.__k = u2.__k || []), t3 && t3.then || D$1(r2), n.__e(t3, r2, u2);
    }
  } else l2 = r2.__e = F(u2.__e, r2, u2, i2, f2, o2, e2, c2, a2, t2);
  return (s2 = n.diffed) && s2(r2), l2;
}
function B$1(n2, t2) {
  if (n2 && 8 == n2.nodeType && n2.data.startsWith("$s")) for (var r2 = 1; n2 = n2.nextSibling; ) {
    if (8 == n2.nodeType) {
      if (n2.data.startsWith("$s")) r2++;
      else if (n2.data.startsWith("/$s") && !--r2) return n2;
    }
    t2 && t2.push(n2);
  }
}
function D$1(n2) {
  n2 && (n2.__c && (n2.__c.__g |= 4), n2.__k && n2.__k.some(D$1));
}
function E$1(t2, r2, u2) {
  for (var i2 = 0; i2 < u2.length; ) G$1(u2[i2++], u2[i2++], u2[i2++]);
  n.__c && n.__c(r2, t2), t2.some(function(r3) {
    try {
      t2 = r3.__h, r3.__h = [], t2.some(function(n2) {
        n2.call(r3);
      });
    } catch (t3) {
      n.__e(t3, r3.__v);
    }
  });
}
function F(t2, r2, u2, i2, f2, o2, e2, l2, c2, a2) {
  var s2, h2, y2, _2, k2, b2, m2, M, $2 = u2.props || p$1, x2 = r2.props, C2 = r2.type;
  if ("svg" == C2 ? f2 = "http://www.w3.org/2000/svg" : "math" == C2 ? f2 = "http://www.w3.org/1998/Math/MathML" : f2 || (f2 = "http://www.w3.org/1999/xhtml"), o2) {
    for (s2 = 0; s2 < o2.length; s2++) if ((k2 = o2[s2]) && (C2 ? k2.localName == C2 : 3 == k2.nodeType)) {
      t2 = k2, o2[s2] = null;
      break;
    }
  }
  if (!t2) {
    if (M = a2.ownerDocument || document, !C2) return M.createTextNode(x2);
    t2 = M.createElementNS(f2, C2, x2.is ? x2 : a2), l2 && (n.__m && n.__m(r2, o2), l2 = false), o2 = null;
  }
  if (C2) {
    if (a2 = "template" == C2 && t2.content || t2, o2 = "textarea" == C2 && null != x2.defaultValue ? null : o2 && d$1.call(a2.childNodes), !l2 && o2) for ($2 = {}, s2 = 0; s2 < t2.attributes.length; s2++) $2[(k2 = t2.attributes[s2]).name] = k2.value;
    for (s2 in $2) k2 = $2[s2], "dangerouslySetInnerHTML" == s2 ? y2 = k2 : "children" == s2 || s2 in x2 || "value" == s2 && "defaultValue" in x2 || "checked" == s2 && "defaultChecked" in x2 || N(t2, s2, null, k2, f2);
    for (s2 in x2) k2 = x2[s2], "children" == s2 ? _2 = k2 : "dangerouslySetInnerHTML" == s2 ? h2 = k2 : "value" == s2 ? b2 = k2 : "checked" == s2 ? m2 = k2 : l2 && "function" != typeof k2 || $2[s2] === k2 || N(t2, s2, k2, $2[s2], f2);
    h2 ? (l2 || y2 && (h2.__html == y2.__html || h2.__html == t2.innerHTML) || (t2.innerHTML = h2.__html), r2.__k = []) : (y2 && (t2.textContent = ""), ("foreignObject" == C2 || "http://www.w3.org/1998/Math/MathML" == f2 && v$1.test(C2)) && (f2 = "http://www.w3.org/1999/xhtml"), I(a2, w$1(_2) ? _2 : [_2], r2, u2, i2, f2, o2, e2, o2 ? o2[0] : u2.__k && S(u2, 0), l2, c2), o2 && o2.some(g$1)), l2 && "textarea" != C2 || (s2 = "value", "progress" == C2 && null == b2 ? t2.removeAttribute(s2) : null == b2 || b2 === t2[s2] && ("progress" != C2 || b2) || N(t2, s2, b2, $2[s2], f2), s2 = "checked", null != m2 && m2 != t2[s2] && N(t2, s2, m2, $2[s2], f2));
  } else $2 === x2 || l2 && t2.data == x2 || (t2.data = x2);
  return t2;
}
function G$1(t2, r2, u2, i2) {
  try {
    "function" == typeof t2 ? r2 ? r2.__x = t2(r2) || 1 : i2 && (i2 = i2.__c || i2.__e) && (r2 = i2.__x) && (i2.__x = null, "function" == typeof r2 ? r2() : t2(null)) : t2.current = r2;
  } catch (t3) {
    n.__e(t3, u2);
  }
}
function J(t2, r2, u2) {
  var i2, f2, o2, e2;
  if (n.unmount && n.unmount(t2), !(i2 = t2.ref) || i2.current && i2.current != t2.__e || G$1(i2, null, r2, t2), i2 = t2.__c) {
    if (i2.componentWillUnmount) try {
      i2.componentWillUnmount();
    } catch (t3) {
      n.__e(t3, r2);
    }
    i2.__P = i2.__n = null;
  }
  if (i2 = t2.__k) for (e2 = 0; e2 < i2.length; e2++) i2[e2] && J(i2[e2], r2, "function" != typeof t2.type || u2 && !t2.props.__P);
  !u2 && (i2 = t2.__c) && (i2 = i2.__z) && (f2 = B$1(i2, o2 = [])) && (i2 == t2.__e && o2.some(g$1), g$1(f2), g$1(i2)), u2 || g$1(t2.__e), t2.__e = t2.__c = t2.__ = null;
}
function K(n2, t2, r2) {
  return this.constructor(n2, r2);
}
function Q(t2, r2) {
  var u2, i2, f2, o2;
  n.__ && n.__(t2, r2), 9 == r2.nodeType && (r2 = r2.documentElement), i2 = (u2 = t2 && 32 & t2.__u) ? null : r2.__k, r2.__k = m$1($, { children: [t2] }), f2 = [], o2 = [], z$1(r2, r2.__k, i2 || p$1, p$1, r2.namespaceURI, i2 ? null : r2.firstChild ? d$1.call(r2.childNodes) : null, f2, i2 ? i2.__e : r2.firstChild, u2, o2), E$1(f2, r2.__k, o2), r2.__k.props.children = null;
}
n = { __e: function(n2, t2, r2, u2) {
  for (var i2, o2, e2; t2 = t2.__; ) if ((i2 = t2.__c) && !(1 & i2.__g)) {
    i2.__g |= 4;
    try {
      if ((e2 = (o2 = i2.constructor) && o2.getDerivedStateFromError) && i2.setState(o2.getDerivedStateFromError(n2)), i2.componentDidCatch && (i2.componentDidCatch(n2, u2 || {}), e2 = 1), e2 && 8 & i2.__g) return void (i2.__g |= 2);
    } catch (t3) {
      n2 = t3;
    }
  }
  throw f$2 = 0, n2;
} }, t$1 = 0, x.prototype.setState = function(n2, t2) {
  var r2 = this.__s;
  r2 && r2 != this.state || (r2 = this.__s = _$1({}, this.state)), "function" == typeof n2 && (n2 = n2(_$1({}, r2), this.props)), n2 && (_$1(r2, n2), this.__v && (t2 && this.__k.push(t2), L(this)));
}, x.prototype.forceUpdate = function(n2) {
  this.__v && (this.__g |= 4, n2 && this.__h.push(n2), L(this));
}, x.prototype.render = $, u$1 = [], f$2 = 0, o$2 = function(n2, t2) {
  return n2.__v.__b - t2.__v.__b;
}, e$1 = /* @__PURE__ */ Symbol(), l$1 = /(PointerCapture)$|Capture$/i, c$1 = 0, a$2 = {};
var f$1 = /* @__PURE__ */ Symbol.for("pv"), o$1 = 0;
function a$1(t2, e2, n$1, u2, a2, i2) {
  e2 || (e2 = {});
  var c2, l2, p2 = e2;
  if ("ref" in p2 && "function" != typeof t2) for (l2 in p2 = {}, e2) "ref" == l2 ? c2 = e2[l2] : p2[l2] = e2[l2];
  var s2 = { type: t2, props: p2, key: n$1, ref: c2, __k: null, __: null, __b: 0, __e: null, __c: null, constructor: f$1, __v: --o$1, __i: -1, __u: 0 };
  return n.vnode && n.vnode(s2), s2;
}
var t, r, u, i, o = Object.is, f = 0, c = [], e = [], a = n, v = a.__b, l = a.__r, m = a.diffed, h = a.__c, s = a.unmount, p = a.__;
function y(n2, t2) {
  a.__h && a.__h(r, n2, f || t2), f = 0;
  var u2 = r.__H || (r.__H = { __: [], __h: [] });
  return n2 >= u2.__.length && u2.__.push({}), u2.__[n2];
}
function d(n2) {
  return f = 1, _(G, n2);
}
function _(n2, u2, i2) {
  var f2 = y(t++, 2);
  if (f2.t = n2, !f2.__c && (f2.__ = [G(void 0, u2), function(n3) {
    var t2 = (f2.__N || f2.__)[0], r2 = f2.t(t2, n3);
    o(t2, r2) || (f2.__N = [r2, f2.__[1]], f2.__c.setState({}));
  }], f2.__c = r, !r.__f)) {
    r.__f = true;
    var c2 = r.shouldComponentUpdate;
    r.shouldComponentUpdate = function(n3, t2, r2) {
      var u3 = this.__H;
      if (!u3) return true;
      var i3 = false, f3 = this.props != n3;
      if (u3.__.some(function(n4) {
        n4.__N && (i3 = true, o(n4.__[0], n4.__N[0]) || (f3 = true));
      }), c2) {
        var e2 = c2.call(this, n3, t2, r2);
        return i3 ? e2 || f3 : e2;
      }
      return !i3 || f3;
    };
  }
  return f2.__;
}
function A(n2, u2) {
  var i2 = y(t++, 3);
  !a.__s && E(i2.__H, u2) && (i2.__P = true, i2.__ = n2, i2.u = u2, r.__H.__h.push(i2));
}
function T(n2) {
  return f = 5, w(function() {
    return { current: n2 };
  }, []);
}
function w(n2, r2) {
  var u2 = y(t++, 7);
  return E(u2.__H, r2) && (u2.__ = n2(), u2.__H = r2), u2.__;
}
function b(n2, t2) {
  return f = 8, w(function() {
    return n2;
  }, t2);
}
function g() {
  var n2;
  do {
    for (; n2 = e.shift(); ) try {
      C(n2);
    } catch (t3) {
      a.__e(t3, { __: (n2 = n2.__P) && n2.__v });
    }
    for (; n2 = c.shift(); ) {
      var t2 = n2.__H;
      if (n2.__P && t2) try {
        t2.__h.some(C), t2.__h.some(D), t2.__h = [];
      } catch (r2) {
        t2.__h = [], a.__e(r2, n2.__v);
      }
    }
  } while (e.length);
}
a.__b = function(n2) {
  r = null, v && v(n2);
}, a.__ = function(n2, t2) {
  n2 && t2.__k && t2.__k.__m && (n2.__m = t2.__k.__m), p && p(n2, t2);
}, a.__r = function(n2) {
  l && l(n2), t = 0;
  var i2 = (r = n2.__c).__H;
  i2 && (u == r ? r.__h = [] : (i2.__h.some(C), i2.__h.some(D), t = 0), i2.__h = [], i2.__.some(function(n3) {
    n3.__N && (n3.__ = n3.__N), n3.u = n3.__N = void 0;
  })), u = r;
}, a.diffed = function(n2) {
  m && m(n2);
  var t2 = n2.__c;
  t2 && t2.__H && (t2.__H.__h.length && B(c.push(t2)), t2.__H.__.some(function(n3) {
    n3.u && (n3.__H = n3.u);
  })), u = r = null;
}, a.__c = function(n2, t2) {
  t2.some(function(n3) {
    try {
      n3.__h.some(C), n3.__h = n3.__h.filter(function(n4) {
        return !n4.__ || D(n4);
      });
    } catch (t3) {
      n3.__h = [function() {
        throw t3;
      }];
    }
  }), h && h(n2, t2);
}, a.unmount = function(n2) {
  s && s(n2);
  var t2, r2, u2 = n2.__c;
  u2 && u2.__H && (u2.__H.__.some(function(u3) {
    try {
      if (u3.__P && u3.__c) {
        if (void 0 === r2) {
          for (r2 = n2.__; r2 && (!r2.__c || !r2.__c.__P); ) r2 = r2.__;
          r2 = r2 && r2.__c;
        }
        u3.__P = r2, B(e.push(u3));
      } else C(u3);
    } catch (n3) {
      t2 = n3;
    }
  }), u2.__H = void 0, t2 && a.__e(t2, u2.__v));
};
var k = "function" == typeof requestAnimationFrame;
function z(n2) {
  var t2, r2 = function() {
    clearTimeout(u2), k && cancelAnimationFrame(t2), setTimeout(n2);
  }, u2 = setTimeout(r2, 35);
  k && (t2 = requestAnimationFrame(r2));
}
function B(n2) {
  1 != n2 && i == a.requestAnimationFrame || ((i = a.requestAnimationFrame) || z)(g);
}
function C(n2) {
  var t2 = r, u2 = n2.__c;
  "function" == typeof u2 && (n2.__c = void 0, u2()), r = t2;
}
function D(n2) {
  var t2 = r;
  n2.__c = n2.__(), r = t2;
}
function E(n2, t2) {
  return !n2 || n2.length != t2.length || t2.some(function(t3, r2) {
    return !o(t3, n2[r2]);
  });
}
function G(n2, t2) {
  return "function" == typeof t2 ? t2(n2) : t2;
}
class Signal {
  constructor(current) {
    this.current = current;
  }
  current;
  watchers = /* @__PURE__ */ new Set();
  get value() {
    return this.current;
  }
  set value(value) {
    if (Object.is(value, this.current)) return;
    this.current = value;
    for (const watcher of [...this.watchers]) watcher();
  }
  watch(watcher) {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  }
}
function useSignal(signal) {
  const [, redraw] = d(0);
  A(() => signal.watch(() => redraw((count2) => count2 + 1)), [signal]);
  return signal.value;
}
const KEY = "durable-mcp-credential";
const credential = new Signal(sessionStorage.getItem(KEY) ?? void 0);
credential.watch(() => {
  if (credential.value) sessionStorage.setItem(KEY, credential.value);
  else sessionStorage.removeItem(KEY);
});
const caller = new Signal(void 0);
function may(who, scope) {
  if (!who) return false;
  if (scope === "payloads") return who.payloads;
  return who.actions && who.scopes.some((held) => held === scope || held === "operate" || held === "admin");
}
class Problem extends Error {
  constructor(code, status, detail, next) {
    super(detail);
    this.code = code;
    this.status = status;
    this.next = next;
  }
  code;
  status;
  next;
}
const unreachable = () => new Problem("unreachable", 0, "The server does not answer.", "Check that it runs; the page tries again by itself.");
function address(path) {
  return new URL(path.replace(/^\//, ""), document.baseURI.replace(/[?#].*$/, "")).href;
}
function headers(more = {}) {
  const token = credential.value;
  return token ? { ...more, authorization: `Bearer ${token}` } : more;
}
async function problemOf(response) {
  const body = await response.json().catch(() => null);
  return new Problem(
    body?.code ?? `http_${response.status}`,
    response.status,
    body?.detail ?? `The server answered ${response.status}.`,
    body?.next ?? ""
  );
}
async function send(path, init) {
  const response = await fetch(address(path), { cache: "no-store", ...init }).catch((error) => {
    throw init.signal?.aborted ? error : unreachable();
  });
  if (!response.ok) throw await problemOf(response);
  return response;
}
async function get(path, signal) {
  const response = await send(path, { headers: headers(), ...signal && { signal } });
  return response.json();
}
async function getText(path, signal) {
  const response = await send(path, { headers: headers(), ...signal && { signal } });
  return response.text();
}
async function post(path, body) {
  const content = { "content-type": "application/json" };
  const response = await send(path, { method: "POST", headers: headers(content), body: JSON.stringify(body) });
  return response.json();
}
async function follow(query, told, alive, signal) {
  let cursor;
  let pause = PAUSE_MIN_MS;
  while (!signal.aborted) {
    try {
      const wanted = headers({ accept: "text/event-stream", ...cursor && { "last-event-id": cursor } });
      const response = await send(`/api/v1/events?${query}`, { headers: wanted, signal });
      alive(true);
      for await (const block of blocks(response.body)) {
        pause = PAUSE_MIN_MS;
        if (block.id) cursor = block.id;
        if (block.data) told(JSON.parse(block.data));
      }
    } catch (error) {
      if (signal.aborted) return;
      alive(false, error instanceof Problem ? error : unreachable());
    }
    await new Promise((resolve) => setTimeout(resolve, pause));
    pause = Math.min(pause * 2, PAUSE_MAX_MS);
  }
}
const PAUSE_MIN_MS = 250;
const PAUSE_MAX_MS = 1e4;
async function* blocks(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (; ; ) {
    const { done, value } = await reader.read();
    if (done) return;
    rest += value.replaceAll("\r\n", "\n");
    let end;
    while ((end = rest.indexOf("\n\n")) >= 0) {
      const lines = rest.slice(0, end).split("\n");
      rest = rest.slice(end + 2);
      const block = {};
      for (const line of lines) {
        const [, name, text] = /^(id|data): ?(.*)$/.exec(line) ?? [];
        if (name === "id") block.id = text;
        if (name === "data") block.data = block.data === void 0 ? text : `${block.data}
${text}`;
      }
      yield block;
    }
  }
}
const TELL_EVERY_MS = 250;
const TOLD_MAX = 500;
function useLive(query, on, told) {
  const token = useSignal(credential);
  const [live, setLive] = d({ alive: false, problem: void 0 });
  const latest = T(told);
  latest.current = told;
  A(() => {
    if (!on) {
      setLive({ alive: false, problem: void 0 });
      return;
    }
    const stop = new AbortController();
    let waiting = [];
    let missed = false;
    let timer;
    const tell = () => {
      timer = void 0;
      const events = waiting;
      waiting = [];
      latest.current(events, missed);
      missed = false;
    };
    const hear = (event) => {
      if (waiting.length < TOLD_MAX) waiting.push(event);
      else missed = true;
      timer ??= setTimeout(tell, TELL_EVERY_MS);
    };
    void follow(new URLSearchParams(query), hear, (alive, problem) => setLive({ alive, problem }), stop.signal);
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [query, on, token]);
  return live;
}
function useLoad(key, load, everyMs) {
  const token = useSignal(credential);
  const [round, setRound] = d(0);
  const [state, setState] = d({ key, loading: true });
  const latest = T(load);
  latest.current = load;
  A(() => {
    const stop = new AbortController();
    setState((before) => before.key === key ? { ...before, loading: true } : { key, loading: true });
    latest.current(stop.signal).then(
      (data) => setState({ key, data, loading: false }),
      (error) => {
        if (stop.signal.aborted) return;
        const problem = error instanceof Problem ? error : new Problem("page", 0, String(error), "Reload the page.");
        setState((before) => ({ ...before, problem, loading: false }));
      }
    );
    return () => stop.abort();
  }, [key, token, round]);
  const reload = b(() => setRound((round2) => round2 + 1), []);
  A(() => {
    if (!everyMs) return;
    const timer = setInterval(() => document.visibilityState === "visible" && reload(), everyMs);
    return () => clearInterval(timer);
  }, [everyMs, reload]);
  const current = state.key === key ? state : { loading: true, data: void 0, problem: void 0 };
  return { data: current.data, problem: current.problem, loading: current.loading, reload };
}
function useNow() {
  const [now, setNow] = d(Date.now());
  A(() => {
    const timer = setInterval(() => document.visibilityState === "visible" && setNow(Date.now()), 1e3);
    return () => clearInterval(timer);
  }, []);
  return now;
}
function Dialog({ title, act, danger, ready = true, onAct, onClose, children }) {
  const dialog = T(null);
  const [busy, setBusy] = d(false);
  const [problem, setProblem] = d();
  A(() => {
    const opened = document.activeElement;
    dialog.current?.showModal();
    return () => opened?.focus();
  }, []);
  const submit = async (event) => {
    event.preventDefault();
    if (busy || !ready) return;
    setBusy(true);
    try {
      await onAct();
      onClose();
    } catch (error) {
      setProblem(error instanceof Problem ? error : new Problem("page", 0, String(error), ""));
      setBusy(false);
    }
  };
  return /* @__PURE__ */ a$1("dialog", { ref: dialog, onClose, "aria-labelledby": "dialog-title", children: /* @__PURE__ */ a$1("form", { method: "dialog", onSubmit: submit, children: [
    /* @__PURE__ */ a$1("h2", { id: "dialog-title", children: title }),
    children,
    problem && /* @__PURE__ */ a$1("p", { class: "dialog-problem", role: "alert", children: [
      problem.message,
      " ",
      problem.next
    ] }),
    /* @__PURE__ */ a$1("p", { class: "dialog-acts", children: [
      /* @__PURE__ */ a$1("button", { type: "button", onClick: () => dialog.current?.close(), children: "Back" }),
      /* @__PURE__ */ a$1("button", { type: "submit", class: danger ? "danger" : "primary", disabled: busy || !ready, children: act })
    ] })
  ] }) });
}
const open = new Signal(false);
function signIn() {
  open.value = true;
}
function SignIn() {
  const shown = useSignal(open);
  const [token, setToken] = d("");
  if (!shown) return null;
  const close = () => {
    setToken("");
    open.value = false;
  };
  return /* @__PURE__ */ a$1(
    Dialog,
    {
      title: "Enter a token",
      act: "Use it",
      ready: token.trim() !== "",
      onAct: async () => void (credential.value = token.trim()),
      onClose: close,
      children: [
        /* @__PURE__ */ a$1("p", { children: [
          "An API key (",
          /* @__PURE__ */ a$1("code", { children: "durable-mcp token create" }),
          "), or, on a server without authentication, the token in its data folder:",
          " ",
          /* @__PURE__ */ a$1("code", { children: "servers/<host>_<port>.token" }),
          ". It is forgotten when this tab is closed."
        ] }),
        /* @__PURE__ */ a$1("label", { children: [
          "Token",
          /* @__PURE__ */ a$1("input", { type: "password", autocomplete: "off", value: token, onInput: (e2) => setToken(e2.currentTarget.value) })
        ] })
      ]
    }
  );
}
function Failure({ problem, reload }) {
  const credentialHelps = ["unauthorized", "local_token_needed", "insufficient_scope"].includes(problem.code);
  return /* @__PURE__ */ a$1("div", { class: "notice notice-failure", role: "alert", children: [
    /* @__PURE__ */ a$1("strong", { children: problem.message }),
    problem.next && /* @__PURE__ */ a$1("p", { children: problem.next }),
    /* @__PURE__ */ a$1("p", { class: "notice-acts", children: [
      credentialHelps && /* @__PURE__ */ a$1("button", { onClick: signIn, children: "Enter a token" }),
      reload && /* @__PURE__ */ a$1("button", { onClick: reload, children: "Try again" }),
      /* @__PURE__ */ a$1("code", { children: problem.code })
    ] })
  ] });
}
function Empty({ children }) {
  return /* @__PURE__ */ a$1("div", { class: "notice notice-empty", children });
}
function Loading() {
  return /* @__PURE__ */ a$1("div", { class: "notice notice-loading", role: "status", children: [
    /* @__PURE__ */ a$1("span", { class: "spinner", "aria-hidden": "true" }),
    " Loading…"
  ] });
}
function Shown({ of, children }) {
  return /* @__PURE__ */ a$1($, { children: [
    of.problem && /* @__PURE__ */ a$1(Failure, { problem: of.problem, reload: of.reload }),
    of.data !== void 0 ? children(of.data) : of.loading && !of.problem && /* @__PURE__ */ a$1(Loading, {})
  ] });
}
function read() {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [view = "", id] = path.split("/");
  return { view: view || "executions", id: id ? decodeURIComponent(id) : void 0, query: new URLSearchParams(query) };
}
const route = new Signal(read());
addEventListener("hashchange", () => route.value = read());
function href(view, id, query) {
  const text = query?.toString();
  return `#/${view}${id === void 0 ? "" : `/${encodeURIComponent(id)}`}${text ? `?${text}` : ""}`;
}
function setQuery(query) {
  const { view, id } = route.value;
  history.replaceState(null, "", href(view, id, query));
  route.value = read();
}
function duration(ms) {
  if (ms < 0) return "–";
  if (ms < 1e3) return `${Math.round(ms)} ms`;
  if (ms < 1e4) return `${(ms / 1e3).toFixed(1)} s`;
  if (ms < 6e4) return `${Math.round(ms / 1e3)} s`;
  const pairs = [
    [36e5, "min", 6e4, "s"],
    [864e5, "h", 36e5, "min"],
    [Infinity, "d", 864e5, "h"]
  ];
  for (const [below, unit, unitMs, lesser] of pairs) {
    if (ms < below) {
      const whole2 = Math.floor(ms / unitMs);
      const lesserMs = { s: 1e3, min: 6e4, h: 36e5 }[lesser];
      const rest = Math.floor((ms - whole2 * unitMs) / lesserMs);
      return rest ? `${whole2} ${unit} ${rest} ${lesser}` : `${whole2} ${unit}`;
    }
  }
  return "–";
}
function ago(at, now) {
  const ms = now - Date.parse(at);
  return ms < 1e3 ? "now" : `${duration(ms < 6e4 ? Math.floor(ms / 1e3) * 1e3 : ms).replace(/\.0 s/, " s")} ago`;
}
const clockFormat = new Intl.DateTimeFormat(void 0, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
const dayFormat = new Intl.DateTimeFormat(void 0, { year: "numeric", month: "short", day: "2-digit" });
function clock(at) {
  const date = new Date(at);
  return `${clockFormat.format(date)}.${String(date.getMilliseconds()).padStart(3, "0")}`;
}
function moment(at) {
  return `${dayFormat.format(new Date(at))}, ${clock(at)}`;
}
function count(number, one, many = `${one}s`) {
  return `${number.toLocaleString()} ${number === 1 ? one : many}`;
}
function bytes(number) {
  if (number < 1024) return `${number} B`;
  if (number < 1048576) return `${(number / 1024).toFixed(1)} KiB`;
  return `${(number / 1048576).toFixed(1)} MiB`;
}
const MARKS = {
  scheduled: "◷",
  ready: "○",
  leased: "▶",
  waiting: "?",
  completed: "✓",
  failed: "✕",
  cancelled: "–",
  unknown: "!"
};
const STATES = Object.keys(MARKS);
function State({ state, isError }) {
  const shown = isError ? `${state}, with an error` : state;
  return /* @__PURE__ */ a$1("span", { class: `state state-${state}${isError ? " state-error" : ""}`, children: [
    /* @__PURE__ */ a$1("span", { "aria-hidden": "true", children: MARKS[state] ?? "·" }),
    " ",
    shown
  ] });
}
function isSettled(execution) {
  return ["completed", "failed", "cancelled", "unknown"].includes(execution.state);
}
function ExecutionTable({ rows, now, selected, onSelect }) {
  const toggle = (id) => {
    const changed = new Set(selected);
    if (!changed.delete(id)) changed.add(id);
    onSelect?.(changed);
  };
  return /* @__PURE__ */ a$1("table", { class: "rows", children: [
    /* @__PURE__ */ a$1("caption", { class: "hidden", children: "Executions, newest first" }),
    /* @__PURE__ */ a$1("thead", { children: /* @__PURE__ */ a$1("tr", { children: [
      onSelect && /* @__PURE__ */ a$1("th", { children: /* @__PURE__ */ a$1(
        "input",
        {
          type: "checkbox",
          "aria-label": "Select all shown",
          checked: rows.length > 0 && rows.every((row) => selected?.has(row.id)),
          onChange: (event) => onSelect(new Set(event.currentTarget.checked ? rows.map((row) => row.id) : []))
        }
      ) }),
      /* @__PURE__ */ a$1("th", { children: "State" }),
      /* @__PURE__ */ a$1("th", { children: "Tool" }),
      /* @__PURE__ */ a$1("th", { children: "Submitted" }),
      /* @__PURE__ */ a$1("th", { children: "Took" }),
      /* @__PURE__ */ a$1("th", { children: "Attempt" }),
      /* @__PURE__ */ a$1("th", { children: "Principal" }),
      /* @__PURE__ */ a$1("th", { children: "Last error" }),
      /* @__PURE__ */ a$1("th", { children: "Id" })
    ] }) }),
    /* @__PURE__ */ a$1("tbody", { children: rows.map((row) => /* @__PURE__ */ a$1("tr", { children: [
      onSelect && /* @__PURE__ */ a$1("td", { children: /* @__PURE__ */ a$1("input", { type: "checkbox", "aria-label": `Select ${row.id}`, checked: selected?.has(row.id) ?? false, onChange: () => toggle(row.id) }) }),
      /* @__PURE__ */ a$1("td", { "data-label": "State", children: /* @__PURE__ */ a$1(State, { state: row.state, isError: row.is_error ?? null }) }),
      /* @__PURE__ */ a$1("td", { "data-label": "Tool", children: /* @__PURE__ */ a$1("span", { children: [
        /* @__PURE__ */ a$1("a", { class: "tool", href: href("executions", row.id), children: row.tool }),
        " ",
        /* @__PURE__ */ a$1("span", { class: "quiet", children: row.upstream })
      ] }) }),
      /* @__PURE__ */ a$1("td", { "data-label": "Submitted", title: moment(row.created_at), children: ago(row.created_at, now) }),
      /* @__PURE__ */ a$1("td", { "data-label": "Took", children: took(row, now) }),
      /* @__PURE__ */ a$1("td", { "data-label": "Attempt", class: row.attempt > 1 ? "again" : "", children: [
        row.attempt,
        " of ",
        row.attempts_allowed
      ] }),
      /* @__PURE__ */ a$1("td", { "data-label": "Principal", children: row.principal }),
      /* @__PURE__ */ a$1("td", { "data-label": "Last error", children: row.error ? /* @__PURE__ */ a$1("code", { title: row.error.message, children: row.error.code }) : "" }),
      /* @__PURE__ */ a$1("td", { "data-label": "Id", children: /* @__PURE__ */ a$1("code", { title: row.id, children: [
        "…",
        row.id.slice(-8)
      ] }) })
    ] }, row.id)) })
  ] });
}
function took(row, now) {
  const endMs = row.ended_at ? Date.parse(row.ended_at) : now;
  const text = duration(Math.max(endMs - Date.parse(row.created_at), 0));
  return row.ended_at ? text : `${text} so far`;
}
const DAY_MS = 864e5;
function Attention() {
  const now = useNow();
  const unknown = useLoad("unknown", (signal) => get("/api/v1/executions?state=unknown&limit=200", signal));
  const waiting = useLoad("waiting", (signal) => get("/api/v1/executions?state=waiting&limit=100", signal));
  const failed = useLoad("failed", (signal) => {
    const since = new Date(Date.now() - DAY_MS).toISOString();
    return get(`/api/v1/executions?state=failed&since=${encodeURIComponent(since)}&limit=100`, signal);
  });
  useLive("", true, () => {
    unknown.reload();
    waiting.reload();
    failed.reload();
  });
  const section = (id, title, sentence, of, none, query) => /* @__PURE__ */ a$1("section", { "aria-labelledby": id, children: [
    /* @__PURE__ */ a$1("h2", { id, children: title }),
    /* @__PURE__ */ a$1("p", { class: "quiet", children: sentence }),
    /* @__PURE__ */ a$1(Shown, { of, children: (page) => page.executions.length ? /* @__PURE__ */ a$1($, { children: [
      /* @__PURE__ */ a$1(ExecutionTable, { rows: page.executions, now }),
      page.next_before && /* @__PURE__ */ a$1("p", { children: /* @__PURE__ */ a$1("a", { href: href("executions", void 0, new URLSearchParams(query)), children: "All of them" }) })
    ] }) : /* @__PURE__ */ a$1(Empty, { children: none }) })
  ] });
  return /* @__PURE__ */ a$1($, { children: [
    /* @__PURE__ */ a$1("h1", { children: "Needs attention" }),
    section(
      "unknown",
      "Outcome unknown",
      "Started at most once, and its end was never learnt. It is not run again until somebody says what became of it.",
      unknown,
      "No call's outcome is unknown.",
      "state=unknown"
    ),
    section("waiting", "Waits for input", "A tool asked something, and nobody has answered yet.", waiting, "No call waits for input.", "state=waiting"),
    section("failed", "Failed in the last day", "No result, and no attempt left.", failed, "No call failed.", "state=failed&within=24h")
  ] });
}
function Copy({ text, what }) {
  const [said, setSaid] = d("");
  const copy = async () => {
    const done = await navigator.clipboard?.writeText(text).then(
      () => true,
      () => false
    );
    setSaid(done ? "Copied" : "Select and copy it by hand");
    setTimeout(() => setSaid(""), 2e3);
  };
  return /* @__PURE__ */ a$1("button", { class: "copy", onClick: copy, title: `Copy ${what}`, children: [
    said || `Copy ${what}`,
    /* @__PURE__ */ a$1("span", { class: "hidden", role: "status", children: said })
  ] });
}
function snippets(url) {
  const json = (value) => JSON.stringify(value, null, 2);
  return [
    ["Claude Code", "One command in a terminal.", `claude mcp add --transport http durable ${url}`],
    [
      "Claude Desktop",
      "In claude_desktop_config.json; it speaks stdio, so the program goes in between.",
      json({ mcpServers: { durable: { command: "durable-mcp", args: ["connect", "--url", url] } } })
    ],
    ["Cursor", "In .cursor/mcp.json.", json({ mcpServers: { durable: { url } } })],
    ["VS Code", "In .vscode/mcp.json.", json({ servers: { durable: { type: "http", url } } })],
    [
      "Any HTTP client",
      "Revision 2026-07-28 needs no session: one request, one answer.",
      [
        `curl ${url} \\`,
        "  -H 'content-type: application/json' -H 'accept: application/json, text/event-stream' \\",
        "  -H 'mcp-protocol-version: 2026-07-28' -H 'mcp-method: tools/list' \\",
        `  -d '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}'`
      ].join("\n")
    ],
    ["The command line", "Calls a tool, and says what became of it.", `durable-mcp call TOOL --args '{}' --url ${url}`]
  ];
}
function Connect() {
  const url = new URL("mcp", document.baseURI.replace(/[?#].*$/, "")).href;
  return /* @__PURE__ */ a$1($, { children: [
    /* @__PURE__ */ a$1("h1", { children: "Connect" }),
    /* @__PURE__ */ a$1("p", { children: [
      "MCP clients connect to ",
      /* @__PURE__ */ a$1("code", { children: url }),
      ". With authentication they send ",
      /* @__PURE__ */ a$1("code", { children: "Authorization: Bearer …" }),
      " with a key of",
      " ",
      /* @__PURE__ */ a$1("code", { children: "durable-mcp token create" }),
      "."
    ] }),
    snippets(url).map(([name, sentence, text]) => /* @__PURE__ */ a$1("section", { class: "snippet", children: [
      /* @__PURE__ */ a$1("h2", { children: name }),
      /* @__PURE__ */ a$1("p", { class: "quiet", children: sentence }),
      /* @__PURE__ */ a$1("pre", { tabIndex: 0, "aria-label": `For ${name}`, children: text }),
      /* @__PURE__ */ a$1(Copy, { text, what: "it" })
    ] }, name))
  ] });
}
function ordersFor(state) {
  if (state === "unknown") return ["resolve", "retry"];
  if (state === "failed" || state === "cancelled") return ["retry"];
  return state === "completed" ? [] : ["cancel"];
}
function Orders({ execution, onDone }) {
  const who = useSignal(caller);
  const [order, setOrder] = d();
  const permitted = ordersFor(execution.state).filter((order2) => may(who, order2 === "cancel" ? "cancel" : "operate"));
  return /* @__PURE__ */ a$1("span", { class: "orders", children: [
    permitted.map((order2) => /* @__PURE__ */ a$1("button", { class: order2 === "cancel" ? "danger" : "", onClick: () => setOrder(order2), children: order2 === "cancel" ? "Cancel…" : order2 === "retry" ? "Run again…" : "Resolve…" }, order2)),
    order && /* @__PURE__ */ a$1(Ask, { order, execution, onClose: () => setOrder(void 0), onDone })
  ] });
}
const TITLES = { cancel: "Cancel this call", retry: "Run this call again", resolve: "Say what became of it" };
function Ask({ order, execution, onClose, onDone }) {
  const [reason, setReason] = d("");
  const [outcome, setOutcome] = d("completed");
  const act = async () => {
    const body = order === "resolve" ? { outcome, reason } : { reason: reason || null };
    const done = await post(`/api/v1/executions/${execution.id}/${order}`, body);
    onDone(done.execution);
  };
  const ready = order === "cancel" || reason.trim() !== "";
  return /* @__PURE__ */ a$1(Dialog, { title: TITLES[order], act: TITLES[order], danger: order === "cancel", ready, onAct: act, onClose, children: [
    /* @__PURE__ */ a$1("p", { children: [
      /* @__PURE__ */ a$1("code", { children: execution.tool }),
      " of ",
      /* @__PURE__ */ a$1("code", { children: execution.upstream }),
      ", called by ",
      execution.principal
    ] }),
    order === "retry" && execution.state === "unknown" && /* @__PURE__ */ a$1("p", { class: "warning", children: "It may have had its effect already. Running it again may repeat that effect, unless the tool honours its key." }),
    order === "cancel" && /* @__PURE__ */ a$1("p", { children: "Cancelling is final. What runs is told to stop; what it did until then stays done." }),
    order === "resolve" && /* @__PURE__ */ a$1("fieldset", { children: [
      /* @__PURE__ */ a$1("legend", { children: "What you found out" }),
      ["completed", "failed"].map((one) => /* @__PURE__ */ a$1("label", { children: [
        /* @__PURE__ */ a$1("input", { type: "radio", name: "outcome", checked: outcome === one, onChange: () => setOutcome(one) }),
        " ",
        one === "completed" ? "It took effect: completed" : "It did not take effect: failed"
      ] }, one))
    ] }),
    /* @__PURE__ */ a$1("label", { children: [
      "Reason",
      order === "cancel" && " (optional)",
      /* @__PURE__ */ a$1("input", { value: reason, maxLength: 1e3, onInput: (e2) => setReason(e2.currentTarget.value) })
    ] }),
    /* @__PURE__ */ a$1("p", { class: "quiet", children: "The reason is kept in the log with your name." })
  ] });
}
const SHOWN_MAX = 2e4;
function Payload({ name, text }) {
  const [exact, setExact] = d(false);
  const [all, setAll] = d(false);
  const shown = exact ? text : laidOut(text);
  const cut = !all && shown.length > SHOWN_MAX;
  return /* @__PURE__ */ a$1("figure", { class: "payload", children: [
    /* @__PURE__ */ a$1("figcaption", { children: [
      /* @__PURE__ */ a$1("strong", { children: name }),
      " ",
      /* @__PURE__ */ a$1("span", { class: "quiet", children: bytes(new Blob([text]).size) }),
      /* @__PURE__ */ a$1("button", { "aria-pressed": exact, onClick: () => setExact(!exact), children: exact ? "Lay out" : "Exact text" }),
      /* @__PURE__ */ a$1(Copy, { what: "the exact text", text })
    ] }),
    /* @__PURE__ */ a$1("pre", { tabIndex: 0, "aria-label": name, children: cut ? shown.slice(0, SHOWN_MAX) : shown }),
    cut && /* @__PURE__ */ a$1("button", { onClick: () => setAll(true), children: "Show all of it" })
  ] });
}
function laidOut(json) {
  let out = "";
  let depth = 0;
  const line = () => `
${"  ".repeat(depth)}`;
  const tokens = json.match(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g) ?? [];
  tokens.forEach((token, index) => {
    const next = tokens[index + 1];
    if (token === "{" || token === "[") {
      const empty = next === "}" || next === "]";
      if (!empty) depth++;
      out += empty ? token : token + line();
    } else if (token === "}" || token === "]") {
      const empty = tokens[index - 1] === "{" || tokens[index - 1] === "[";
      if (!empty) depth--;
      out += empty ? token : line() + token;
    } else if (token === ",") out += token + line();
    else out += token === ":" ? ": " : token;
  });
  return out;
}
const LOST = /* @__PURE__ */ new Set(["lease_expired", "process_died", "child_died", "connection_lost", "worker_gone"]);
function lifeOf(events) {
  const life = { holds: [], gaps: [], startMs: 0 };
  let hold;
  let gap;
  const close = (atMs, end, why) => {
    if (!hold) return;
    Object.assign(hold, { toMs: atMs, end }, why !== void 0 && { why });
    hold = void 0;
  };
  const wait = (fromMs, why) => {
    gap ??= { fromMs, why };
  };
  for (const event of events) {
    const atMs = Date.parse(event.at);
    const { worker = "?", attempt = 0, fencing_token = 0, error } = event;
    switch (event.type) {
      case "submitted":
        life.startMs = atMs;
        wait(atMs, "queued");
        break;
      case "leased":
        if (gap) {
          if (atMs > gap.fromMs) life.gaps.push({ ...gap, toMs: atMs, by: worker });
          gap = void 0;
        }
        close(atMs, "lost", "another worker took over");
        hold = { attempt, worker, token: fencing_token, fromMs: atMs, end: "held" };
        life.holds.push(hold);
        break;
      case "released":
        close(atMs, "released");
        wait(atMs, "queued");
        break;
      case "parked":
        close(atMs, "parked");
        wait(atMs, "input");
        break;
      case "retried":
      case "lost": {
        const lost = event.type === "lost" || error && LOST.has(error.code);
        close(atMs, lost ? "lost" : "failed", error?.message);
        if (gap) life.gaps.push({ ...gap, toMs: atMs });
        gap = void 0;
        wait(atMs, event.type === "lost" ? "decision" : lost ? "recovery" : "back-off");
        break;
      }
      case "completed":
      case "failed":
      case "cancelled": {
        const lost = event.type === "failed" && error && LOST.has(error.code);
        close(atMs, lost ? "lost" : event.type, error?.message);
        if (gap && atMs > gap.fromMs) life.gaps.push({ ...gap, toMs: atMs });
        gap = void 0;
        life.endMs = atMs;
        break;
      }
    }
  }
  if (gap) life.gaps.push(gap);
  return life;
}
const WIDTH = 1e3;
const LANE = 30;
const ENDS = {
  held: "running",
  completed: "completed",
  failed: "failed",
  lost: "lost",
  released: "given back unstarted",
  parked: "gave its lease up, waits for input",
  cancelled: "cancelled"
};
const WAITS = {
  queued: "waited for a worker",
  recovery: "nobody worked on it",
  "back-off": "waited for its next attempt",
  input: "waited for its client",
  decision: "waits for a decision"
};
function Timeline({ events, now }) {
  const life = lifeOf(events);
  const endMs = life.endMs ?? Math.max(now, life.startMs + 1);
  const spanMs = Math.max(endMs - life.startMs, 1);
  const x2 = (ms) => (ms - life.startMs) / spanMs * WIDTH;
  const height = Math.max(life.holds.length, 1) * LANE + 8;
  const sentence = (hold) => `Attempt ${hold.attempt} at ${hold.worker}: ${ENDS[hold.end]} after ${duration((hold.toMs ?? now) - hold.fromMs)}`;
  const shownGaps = life.gaps.filter((gap) => (gap.toMs ?? endMs) - gap.fromMs > spanMs / 400);
  return /* @__PURE__ */ a$1("figure", { class: "timeline", children: [
    /* @__PURE__ */ a$1("svg", { viewBox: `0 0 ${WIDTH} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": "The leases of this call over time", children: [
      shownGaps.map((gap) => /* @__PURE__ */ a$1(
        "rect",
        {
          class: `gap gap-${gap.why}`,
          x: x2(gap.fromMs),
          width: Math.max(x2(gap.toMs ?? endMs) - x2(gap.fromMs), 1),
          y: 0,
          height,
          children: /* @__PURE__ */ a$1("title", { children: `${WAITS[gap.why]} for ${duration((gap.toMs ?? now) - gap.fromMs)}` })
        },
        `gap ${gap.fromMs}`
      )),
      life.holds.map((hold, lane) => /* @__PURE__ */ a$1(
        "rect",
        {
          class: `lease lease-${hold.end}`,
          x: x2(hold.fromMs),
          width: Math.max(x2(hold.toMs ?? endMs) - x2(hold.fromMs), 3),
          y: lane * LANE + 6,
          height: LANE - 8,
          rx: 2,
          children: /* @__PURE__ */ a$1("title", { children: sentence(hold) })
        },
        hold.token
      ))
    ] }),
    /* @__PURE__ */ a$1("div", { class: "timeline-ends", children: [
      /* @__PURE__ */ a$1("span", { children: clock(new Date(life.startMs).toISOString()) }),
      /* @__PURE__ */ a$1("span", { children: duration(spanMs) }),
      /* @__PURE__ */ a$1("span", { children: life.endMs ? clock(new Date(life.endMs).toISOString()) : "now" })
    ] }),
    /* @__PURE__ */ a$1("ol", { class: "lanes", children: [
      life.holds.map((hold) => {
        const before = life.gaps.find((gap) => gap.toMs === hold.fromMs && gap.toMs > gap.fromMs);
        return /* @__PURE__ */ a$1("li", { children: [
          before && /* @__PURE__ */ a$1("span", { class: "lane-gap", children: [
            WAITS[before.why],
            " for ",
            duration(before.toMs - before.fromMs),
            before.why === "recovery" && `, then ${hold.worker} took over`
          ] }),
          /* @__PURE__ */ a$1("span", { class: `swatch lease-${hold.end}`, "aria-hidden": "true" }),
          " ",
          sentence(hold),
          /* @__PURE__ */ a$1("span", { class: "quiet", children: [
            " · fencing token ",
            hold.token
          ] }),
          hold.why && hold.end !== "completed" && /* @__PURE__ */ a$1("span", { class: "lane-why", children: hold.why })
        ] }, hold.token);
      }),
      life.gaps.filter((gap) => gap.toMs === void 0).map((gap) => /* @__PURE__ */ a$1("li", { class: "lane-gap", children: [
        WAITS[gap.why],
        ", for ",
        duration(Math.max(now - gap.fromMs, 0)),
        " now"
      ] }, "open"))
    ] })
  ] });
}
async function whole(id, signal) {
  const at = `/api/v1/executions/${encodeURIComponent(id)}`;
  const [row, why, events] = await Promise.all([get(at, signal), get(`${at}/why`, signal), log(at, signal)]);
  return { row, why, events };
}
async function log(at, signal) {
  const events = [];
  for (let after = 0; after !== null; ) {
    const page = await get(`${at}/events?after=${after}`, signal);
    events.push(...page.events);
    after = page.next_after ?? null;
  }
  return events;
}
function Execution({ id }) {
  const loaded = useLoad(id, (signal) => whole(id, signal));
  const row = loaded.data?.row;
  const goesOn = row !== void 0 && (!isSettled(row) || row.state === "unknown");
  useLive(new URLSearchParams({ id_prefix: id }).toString(), goesOn, loaded.reload);
  return /* @__PURE__ */ a$1($, { children: [
    /* @__PURE__ */ a$1("p", { class: "back", children: /* @__PURE__ */ a$1("a", { href: href("executions"), children: "← Executions" }) }),
    /* @__PURE__ */ a$1(Shown, { of: loaded, children: ({ row: row2, events, why }) => /* @__PURE__ */ a$1($, { children: [
      /* @__PURE__ */ a$1("header", { class: "view-head", children: [
        /* @__PURE__ */ a$1("h1", { children: [
          row2.tool,
          " ",
          /* @__PURE__ */ a$1("span", { class: "quiet", children: [
            "of ",
            row2.upstream
          ] })
        ] }),
        /* @__PURE__ */ a$1(State, { state: row2.state, isError: row2.is_error ?? null }),
        /* @__PURE__ */ a$1(
          Orders,
          {
            execution: row2,
            onDone: (of) => {
              if (of.id !== row2.id) location.hash = href("executions", of.id);
              loaded.reload();
            }
          }
        )
      ] }),
      /* @__PURE__ */ a$1(Sentences, { why }),
      /* @__PURE__ */ a$1(Life, { events }),
      /* @__PURE__ */ a$1(Facts, { row: row2 }),
      /* @__PURE__ */ a$1(Log, { events }),
      /* @__PURE__ */ a$1(Payloads, { row: row2 })
    ] }) })
  ] });
}
function Sentences({ why }) {
  return /* @__PURE__ */ a$1("section", { "aria-labelledby": "why", children: [
    /* @__PURE__ */ a$1("h2", { id: "why", children: "What happened" }),
    /* @__PURE__ */ a$1("ul", { class: "sentences", children: [why.asked, why.ran, why.lost, why.decided, why.next].map((sentence, index) => /* @__PURE__ */ a$1("li", { children: sentence }, index)) })
  ] });
}
function Life({ events }) {
  const now = useNow();
  return /* @__PURE__ */ a$1("section", { "aria-labelledby": "life", children: [
    /* @__PURE__ */ a$1("h2", { id: "life", children: "Attempts and workers" }),
    /* @__PURE__ */ a$1(Timeline, { events, now })
  ] });
}
function Facts({ row }) {
  const facts = [
    ["Id", row.id],
    ["Principal", `${row.principal} in ${row.namespace}`],
    ["Idempotency key", row.key],
    ["Effect key", row.effect_key === row.id ? "its own id" : row.effect_key],
    ["Delivery", `${row.delivery} (${row.delivery_source})`],
    ["Submitted", moment(row.created_at)],
    ["Ended", row.ended_at && moment(row.ended_at)],
    ["Runs at", row.run_at && moment(row.run_at)],
    ["Lease", row.lease && `${row.lease.worker}, until ${clock(row.lease.expires_at)} without a heartbeat`],
    ["Result from", row.source],
    ["Effect of the cancelled call", row.effect],
    ["Last error", row.error && `${row.error.code}: ${row.error.message}`]
  ];
  return /* @__PURE__ */ a$1("section", { "aria-labelledby": "facts", children: [
    /* @__PURE__ */ a$1("h2", { id: "facts", children: "Facts" }),
    /* @__PURE__ */ a$1("dl", { class: "facts", children: [
      facts.map(
        ([name, value]) => value ? /* @__PURE__ */ a$1("div", { children: [
          /* @__PURE__ */ a$1("dt", { children: name }),
          /* @__PURE__ */ a$1("dd", { children: value })
        ] }, name) : null
      ),
      row.retry_of && /* @__PURE__ */ a$1("div", { children: [
        /* @__PURE__ */ a$1("dt", { children: "Repeats" }),
        /* @__PURE__ */ a$1("dd", { children: /* @__PURE__ */ a$1("a", { href: href("executions", row.retry_of), children: row.retry_of }) })
      ] })
    ] })
  ] });
}
function Log({ events }) {
  const firstMs = events[0] ? Date.parse(events[0].at) : 0;
  return /* @__PURE__ */ a$1("section", { "aria-labelledby": "log", children: [
    /* @__PURE__ */ a$1("h2", { id: "log", children: "Log" }),
    /* @__PURE__ */ a$1("table", { class: "rows log", children: [
      /* @__PURE__ */ a$1("thead", { children: /* @__PURE__ */ a$1("tr", { children: [
        /* @__PURE__ */ a$1("th", { children: "No." }),
        /* @__PURE__ */ a$1("th", { children: "At" }),
        /* @__PURE__ */ a$1("th", { children: "After" }),
        /* @__PURE__ */ a$1("th", { children: "Event" }),
        /* @__PURE__ */ a$1("th", { children: "Members" })
      ] }) }),
      /* @__PURE__ */ a$1("tbody", { children: events.map(({ seq, type, at, ...members }) => /* @__PURE__ */ a$1("tr", { children: [
        /* @__PURE__ */ a$1("td", { "data-label": "No.", children: seq }),
        /* @__PURE__ */ a$1("td", { "data-label": "At", title: moment(at), children: clock(at) }),
        /* @__PURE__ */ a$1("td", { "data-label": "After", children: duration(Date.parse(at) - firstMs) }),
        /* @__PURE__ */ a$1("td", { "data-label": "Event", children: /* @__PURE__ */ a$1("code", { children: type }) }),
        /* @__PURE__ */ a$1("td", { "data-label": "Members", children: /* @__PURE__ */ a$1("code", { class: "members", children: Object.entries(members).map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`).join("   ") }) })
      ] }, seq)) })
    ] })
  ] });
}
function Payloads({ row }) {
  const who = useSignal(caller);
  const [wanted, setWanted] = d(false);
  A(() => setWanted(false), [row.id]);
  return /* @__PURE__ */ a$1("section", { "aria-labelledby": "payloads", children: [
    /* @__PURE__ */ a$1("h2", { id: "payloads", children: "Arguments and result" }),
    !may(who, "payloads") ? /* @__PURE__ */ a$1(Empty, { children: "Your credential does not permit to read payloads." }) : wanted ? /* @__PURE__ */ a$1(Texts, { row }) : /* @__PURE__ */ a$1("button", { onClick: () => setWanted(true), children: "Show them" })
  ] });
}
function Texts({ row }) {
  const loaded = useLoad(`${row.id} ${row.updated_at}`, async (signal) => {
    const line = await getText(`/api/v1/executions/export?id_prefix=${row.id}`, signal);
    const ending2 = await getText(`/api/v1/executions/${row.id}/result`, signal);
    return { args: member(line, "arguments"), ending: JSON.parse(ending2), text: member(ending2, "result") ?? member(ending2, "rpc_error") };
  });
  if (loaded.problem) return /* @__PURE__ */ a$1(Failure, { problem: loaded.problem, reload: loaded.reload });
  if (!loaded.data) return /* @__PURE__ */ a$1(Loading, {});
  const { args, ending, text } = loaded.data;
  return /* @__PURE__ */ a$1($, { children: [
    args === void 0 ? /* @__PURE__ */ a$1(Empty, { children: "The arguments were deleted by retention." }) : /* @__PURE__ */ a$1(Payload, { name: "Arguments", text: args }),
    args !== void 0 && /* @__PURE__ */ a$1(Copy, { what: "as a command", text: command(row, args) }),
    text !== void 0 ? /* @__PURE__ */ a$1(Payload, { name: ending.rpc_error ? "Error of the server" : "Result", text }) : /* @__PURE__ */ a$1(Empty, { children: ending.deleted ? "The result was deleted by retention." : "There is no result." })
  ] });
}
function member(json, name) {
  const wanted = JSON.stringify(name);
  let depth = 0;
  for (let at = 0; at < json.length; at++) {
    const letter = json[at];
    if (letter === "{" || letter === "[") depth++;
    else if (letter === "}" || letter === "]") depth--;
    else if (letter === '"') {
      const end = endOfString(json, at);
      const isName = depth === 1 && /^\s*:/.test(json.slice(end, end + 8));
      if (isName && json.slice(at, end) === wanted) {
        const from = json.indexOf(":", end) + 1;
        const text = json.slice(from, endOfValue(json, from)).trim();
        return text === "null" ? void 0 : text;
      }
      at = end - 1;
    }
  }
  return void 0;
}
function endOfString(json, from) {
  let at = from + 1;
  while (at < json.length && json[at] !== '"') at += json[at] === "\\" ? 2 : 1;
  return at + 1;
}
function endOfValue(json, from) {
  let depth = 0;
  for (let at = from; at < json.length; at++) {
    const letter = json[at];
    if (letter === '"') at = endOfString(json, at) - 1;
    else if (letter === "{" || letter === "[") depth++;
    else if ((letter === "}" || letter === "]") && depth-- === 0) return at;
    else if (letter === "," && depth === 0) return at;
  }
  return json.length;
}
function command(row, args) {
  return `durable-mcp call ${quoted(row.tool)} --args ${quoted(args)} --url ${quoted(new URL("mcp", document.baseURI).href.replace(/#.*$/, ""))}`;
}
function quoted(text) {
  return /^[\w./:-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
const NAMES = { cancel: "Cancel", retry: "Run again", resolve: "Resolve" };
function BulkOrders({ filter, selected, act, onDone }) {
  const [pending, setPending] = d();
  const [reason, setReason] = d("");
  const [outcome, setOutcome] = d("failed");
  const [said, setSaid] = d("");
  const ask = async (action) => {
    setSaid("");
    if (selected.size) {
      setPending({ action, ids: [...selected], found: selected.size });
      return;
    }
    try {
      const preview = await act({ action, filter, preview: true });
      if (preview.more) setSaid(`More than ${preview.matching.toLocaleString()} fit: narrow the filter first.`);
      else if (!preview.matching) setSaid("The filter finds nothing with which that can be done.");
      else setPending({ action, found: preview.matching });
    } catch (error) {
      setSaid(error instanceof Problem ? `${error.message} ${error.next}` : String(error));
    }
  };
  const order = async () => {
    if (!pending) return;
    const members = { reason, ...pending.action === "resolve" && { outcome } };
    let done = 0;
    let refused = 0;
    if (pending.ids) {
      for (const id of pending.ids) {
        await post(`/api/v1/executions/${id}/${pending.action}`, members).then(
          () => done++,
          (error) => {
            if (!(error instanceof Problem) || error.status !== 409) throw error;
            refused++;
          }
        );
      }
    } else {
      const answer = await act({ action: pending.action, filter, expected: pending.found, preview: false, ...members });
      for (const one of answer.outcomes ?? []) one.ok ? done++ : refused++;
    }
    setSaid(`Done with ${count(done, "call")}${refused ? `; ${count(refused, "call")} did not permit it` : ""}.`);
    setReason("");
    onDone();
  };
  return /* @__PURE__ */ a$1("div", { class: "bulk", children: [
    /* @__PURE__ */ a$1("span", { children: selected.size ? `${count(selected.size, "row")} selected:` : "All that fit the filters:" }),
    Object.keys(NAMES).map((action) => /* @__PURE__ */ a$1("button", { onClick: () => ask(action), children: [
      NAMES[action],
      "…"
    ] }, action)),
    /* @__PURE__ */ a$1("span", { role: "status", children: said }),
    pending && /* @__PURE__ */ a$1(
      Dialog,
      {
        title: `${NAMES[pending.action]}: ${count(pending.found, "call")}`,
        act: `${NAMES[pending.action]} ${pending.found.toLocaleString()}`,
        danger: pending.action !== "resolve",
        ready: reason.trim() !== "",
        onAct: order,
        onClose: () => setPending(void 0),
        children: [
          pending.action === "resolve" && /* @__PURE__ */ a$1("label", { children: [
            "As",
            /* @__PURE__ */ a$1("select", { value: outcome, onChange: (event) => setOutcome(event.currentTarget.value), children: [
              /* @__PURE__ */ a$1("option", { value: "failed", children: "failed: it did not take effect" }),
              /* @__PURE__ */ a$1("option", { value: "completed", children: "completed: it took effect" })
            ] })
          ] }),
          /* @__PURE__ */ a$1("label", { children: [
            "Reason",
            /* @__PURE__ */ a$1("input", { value: reason, maxLength: 1e3, onInput: (event) => setReason(event.currentTarget.value) })
          ] }),
          /* @__PURE__ */ a$1("p", { class: "quiet", children: "Each order is kept in the log of its call with your name and the reason." })
        ]
      }
    )
  ] });
}
const PAGE = 50;
const SPANS = [["", "any time"], ["15m", "15 minutes"], ["1h", "1 hour"], ["24h", "24 hours"], ["7d", "7 days"]];
const UNITS = { m: 6e4, h: 36e5, d: 864e5 };
const TEXTS = [
  ["tool", "Tool"],
  ["upstream", "Server"],
  ["principal", "Principal"],
  ["key", "Key"],
  ["error_code", "Error code"],
  ["id_prefix", "Id begins with"]
];
function parameters(query) {
  const wanted = new URLSearchParams();
  for (const name of ["state", "recovered", "attempts_over", ...TEXTS.map(([name2]) => name2)]) {
    const value = query.get(name);
    if (value) wanted.set(name, value);
  }
  const [, number, unit] = /^(\d+)([mhd])$/.exec(query.get("within") ?? "") ?? [];
  if (unit) {
    const since = Math.floor((Date.now() - Number(number) * UNITS[unit]) / 6e4) * 6e4;
    wanted.set("since", new Date(since).toISOString());
  }
  return wanted;
}
function filterOf(wanted) {
  const filter = Object.fromEntries(wanted);
  if (filter.state) filter.state = filter.state.split(",");
  if (filter.recovered) filter.recovered = true;
  if (filter.attempts_over) filter.attempts_over = Number(filter.attempts_over);
  return filter;
}
function Executions() {
  const { query } = useSignal(route);
  const who = useSignal(caller);
  const wanted = parameters(query);
  const key = wanted.toString();
  const [live, setLive] = d(true);
  const [older, setOlder] = d([]);
  const [next, setNext] = d();
  const [selected, setSelected] = d(/* @__PURE__ */ new Set());
  const now = useNow();
  const page = useLoad(key, (signal) => get(`/api/v1/executions?${withLimit(wanted)}`, signal));
  A(() => {
    setOlder([]);
    setNext(void 0);
    setSelected(/* @__PURE__ */ new Set());
  }, [key]);
  const tail = useLive(new URLSearchParams().toString(), live, page.reload);
  const more = async () => {
    const before = next ?? page.data?.next_before;
    if (!before) return;
    const asked = withLimit(wanted);
    asked.set("before", before);
    const answer = await get(`/api/v1/executions?${asked}`);
    setOlder((rows) => [...rows, ...answer.executions]);
    setNext(answer.next_before ?? null);
  };
  const act = async (order) => {
    const done = await post("/api/v1/executions/actions", order);
    if (!order.preview) page.reload();
    return done;
  };
  return /* @__PURE__ */ a$1($, { children: [
    /* @__PURE__ */ a$1("header", { class: "view-head", children: [
      /* @__PURE__ */ a$1("h1", { children: "Executions" }),
      /* @__PURE__ */ a$1("button", { "aria-pressed": live, onClick: () => setLive(!live), children: live ? "Pause" : "Go on" }),
      /* @__PURE__ */ a$1("span", { class: `tail ${tail.alive ? "tail-on" : ""}`, role: "status", children: !live ? "paused" : tail.alive ? "live" : tail.problem ? `not live: ${tail.problem.message}` : "connecting…" })
    ] }),
    /* @__PURE__ */ a$1(Filters, { query }),
    may(who, "operate") && /* @__PURE__ */ a$1(BulkOrders, { filter: filterOf(wanted), selected, act, onDone: () => setSelected(/* @__PURE__ */ new Set()) }),
    /* @__PURE__ */ a$1(Shown, { of: page, children: (data) => {
      const rows = merged(data.executions, older);
      if (!rows.length) {
        return /* @__PURE__ */ a$1(Empty, { children: key ? "No call fits these filters." : "No call yet. The first one shows up here by itself." });
      }
      const hasMore = next === void 0 ? data.next_before : next;
      return /* @__PURE__ */ a$1($, { children: [
        /* @__PURE__ */ a$1(ExecutionTable, { rows, now, ...may(who, "operate") && { selected, onSelect: setSelected } }),
        hasMore && /* @__PURE__ */ a$1("p", { class: "more", children: /* @__PURE__ */ a$1("button", { onClick: more, children: "Show older ones" }) })
      ] });
    } })
  ] });
}
function withLimit(wanted) {
  const asked = new URLSearchParams(wanted);
  asked.set("limit", String(PAGE));
  return asked;
}
function merged(first, older) {
  const seen = new Set(first.map((row) => row.id));
  return [...first, ...older.filter((row) => !seen.has(row.id))];
}
function Filters({ query }) {
  const set = (name, value) => {
    const changed = new URLSearchParams(query);
    if (value) changed.set(name, value);
    else changed.delete(name);
    setQuery(changed);
  };
  const states = new Set((query.get("state") ?? "").split(",").filter(Boolean));
  const toggle = (state) => {
    const changed = new Set(states);
    if (!changed.delete(state)) changed.add(state);
    set("state", STATES.filter((one) => changed.has(one)).join(","));
  };
  const given = [...query.keys()].length;
  const fieldsGiven = given > (query.has("state") ? 1 : 0);
  return /* @__PURE__ */ a$1("form", { class: "filters", onSubmit: (event) => event.preventDefault(), "aria-label": "Filters", children: [
    /* @__PURE__ */ a$1("fieldset", { class: "chips", children: [
      /* @__PURE__ */ a$1("legend", { class: "hidden", children: "State" }),
      STATES.map((state) => /* @__PURE__ */ a$1("label", { class: `chip state-${state}`, children: [
        /* @__PURE__ */ a$1("input", { type: "checkbox", checked: states.has(state), onChange: () => toggle(state) }),
        " ",
        state
      ] }, state))
    ] }),
    /* @__PURE__ */ a$1("details", { open: wide.matches || fieldsGiven, children: [
      /* @__PURE__ */ a$1("summary", { children: "More filters" }),
      /* @__PURE__ */ a$1("div", { class: "fields", children: [
        TEXTS.map(([name, label]) => /* @__PURE__ */ a$1("label", { children: [
          label,
          /* @__PURE__ */ a$1(Typed, { value: query.get(name) ?? "", onValue: (value) => set(name, value) })
        ] }, name)),
        /* @__PURE__ */ a$1("label", { children: [
          "Submitted within",
          /* @__PURE__ */ a$1("select", { value: query.get("within") ?? "", onChange: (event) => set("within", event.currentTarget.value), children: SPANS.map(([value, label]) => /* @__PURE__ */ a$1("option", { value, children: label }, value)) })
        ] }),
        /* @__PURE__ */ a$1("label", { class: "check", children: [
          /* @__PURE__ */ a$1(
            "input",
            {
              type: "checkbox",
              checked: query.get("attempts_over") === "1",
              onChange: (event) => set("attempts_over", event.currentTarget.checked ? "1" : "")
            }
          ),
          " ",
          "more than one attempt"
        ] }),
        /* @__PURE__ */ a$1("label", { class: "check", children: [
          /* @__PURE__ */ a$1(
            "input",
            {
              type: "checkbox",
              checked: query.get("recovered") === "true",
              onChange: (event) => set("recovered", event.currentTarget.checked ? "true" : "")
            }
          ),
          " ",
          "recovered"
        ] }),
        given > 0 && /* @__PURE__ */ a$1("button", { type: "button", onClick: () => setQuery(new URLSearchParams()), children: "Clear filters" })
      ] })
    ] })
  ] });
}
const wide = matchMedia("(min-width: 46rem)");
const TYPING_PAUSE_MS = 300;
function Typed({ value, onValue }) {
  const [text, setText] = d(value);
  A(() => setText(value), [value]);
  A(() => {
    if (text === value) return;
    const timer = setTimeout(() => onValue(text.trim()), TYPING_PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return /* @__PURE__ */ a$1("input", { type: "search", value: text, maxLength: 300, onInput: (event) => setText(event.currentTarget.value) });
}
function Sessions() {
  const now = useNow();
  const who = useSignal(caller);
  const [closing, setClosing] = d();
  const [pages, setPages] = d([]);
  const after = pages.at(-1);
  const loaded = useLoad(
    after ?? "",
    (signal) => get(`/api/v1/sessions?limit=100${after ? `&after=${encodeURIComponent(after)}` : ""}`, signal),
    5e3
  );
  return /* @__PURE__ */ a$1($, { children: [
    /* @__PURE__ */ a$1("h1", { children: "Sessions" }),
    /* @__PURE__ */ a$1("p", { class: "quiet", children: "Of clients that speak a revision up to 2025-11-25. Newer ones have none." }),
    /* @__PURE__ */ a$1(Shown, { of: loaded, children: ({ sessions, next_after }) => /* @__PURE__ */ a$1($, { children: [
      sessions.length ? /* @__PURE__ */ a$1("table", { class: "rows", children: [
        /* @__PURE__ */ a$1("caption", { class: "hidden", children: "Sessions" }),
        /* @__PURE__ */ a$1("thead", { children: /* @__PURE__ */ a$1("tr", { children: [
          /* @__PURE__ */ a$1("th", { children: "Client" }),
          /* @__PURE__ */ a$1("th", { children: "State" }),
          /* @__PURE__ */ a$1("th", { children: "Principal" }),
          /* @__PURE__ */ a$1("th", { children: "Revision" }),
          /* @__PURE__ */ a$1("th", { children: "Opened" }),
          /* @__PURE__ */ a$1("th", { children: "Last used" }),
          /* @__PURE__ */ a$1("th", { children: "Log level" }),
          /* @__PURE__ */ a$1("th", { children: "Subscriptions" }),
          /* @__PURE__ */ a$1("th", { children: "Id" }),
          /* @__PURE__ */ a$1("th", { children: /* @__PURE__ */ a$1("span", { class: "hidden", children: "Orders" }) })
        ] }) }),
        /* @__PURE__ */ a$1("tbody", { children: sessions.map((session) => /* @__PURE__ */ a$1("tr", { children: [
          /* @__PURE__ */ a$1("td", { "data-label": "Client", children: session.client_name ?? "?" }),
          /* @__PURE__ */ a$1("td", { "data-label": "State", children: session.state }),
          /* @__PURE__ */ a$1("td", { "data-label": "Principal", children: session.principal }),
          /* @__PURE__ */ a$1("td", { "data-label": "Revision", children: session.revision }),
          /* @__PURE__ */ a$1("td", { "data-label": "Opened", title: moment(session.created_at), children: ago(session.created_at, now) }),
          /* @__PURE__ */ a$1("td", { "data-label": "Last used", title: moment(session.last_seen_at), children: ago(session.last_seen_at, now) }),
          /* @__PURE__ */ a$1("td", { "data-label": "Log level", children: session.log_level ?? "" }),
          /* @__PURE__ */ a$1("td", { "data-label": "Subscriptions", children: session.subscriptions || "" }),
          /* @__PURE__ */ a$1("td", { "data-label": "Id", title: session.id, children: /* @__PURE__ */ a$1("code", { children: [
            session.id.slice(0, 8),
            "…"
          ] }) }),
          /* @__PURE__ */ a$1("td", { children: may(who, "operate") && session.state === "open" && /* @__PURE__ */ a$1("button", { onClick: () => setClosing(session), children: "Close…" }) })
        ] }, session.id)) })
      ] }) : /* @__PURE__ */ a$1(Empty, { children: "No session is open." }),
      /* @__PURE__ */ a$1("p", { class: "more", children: [
        pages.length > 0 && /* @__PURE__ */ a$1("button", { onClick: () => setPages(pages.slice(0, -1)), children: "Back" }),
        next_after && /* @__PURE__ */ a$1("button", { onClick: () => setPages([...pages, next_after]), children: "More" })
      ] })
    ] }) }),
    closing && /* @__PURE__ */ a$1(
      Dialog,
      {
        title: "Close this session",
        act: "Close it",
        danger: true,
        onAct: async () => {
          await post(`/api/v1/sessions/${closing.id}/close`, {});
          loaded.reload();
        },
        onClose: () => setClosing(void 0),
        children: /* @__PURE__ */ a$1("p", { children: [
          closing.client_name ?? "Its client",
          " of ",
          closing.principal,
          " has to initialize anew. Calls that run go on."
        ] })
      }
    )
  ] });
}
function Tools() {
  const loaded = useLoad("tools", (signal) => get("/api/v1/tools", signal), 1e4);
  return /* @__PURE__ */ a$1($, { children: [
    /* @__PURE__ */ a$1("h1", { children: "Tools" }),
    /* @__PURE__ */ a$1(Shown, { of: loaded, children: ({ tools, upstreams }) => /* @__PURE__ */ a$1($, { children: [
      /* @__PURE__ */ a$1("ul", { class: "upstreams", children: upstreams.map((upstream) => /* @__PURE__ */ a$1("li", { children: [
        /* @__PURE__ */ a$1("strong", { children: upstream.name }),
        " ",
        /* @__PURE__ */ a$1("span", { class: `upstream-${upstream.state}`, children: upstream.state }),
        /* @__PURE__ */ a$1("span", { class: "quiet", children: [
          ", ",
          count(upstream.tools, "tool")
        ] }),
        upstream.problem && /* @__PURE__ */ a$1("p", { class: "warning", children: upstream.problem })
      ] }, upstream.name)) }),
      tools.length ? /* @__PURE__ */ a$1("table", { class: "rows", children: [
        /* @__PURE__ */ a$1("caption", { class: "hidden", children: "Tools" }),
        /* @__PURE__ */ a$1("thead", { children: /* @__PURE__ */ a$1("tr", { children: [
          /* @__PURE__ */ a$1("th", { children: "Tool" }),
          /* @__PURE__ */ a$1("th", { children: "What it does" }),
          /* @__PURE__ */ a$1("th", { children: "Delivery" }),
          /* @__PURE__ */ a$1("th", { children: "Attempts" }),
          /* @__PURE__ */ a$1("th", { children: "Waits for" })
        ] }) }),
        /* @__PURE__ */ a$1("tbody", { children: tools.map((tool) => /* @__PURE__ */ a$1("tr", { children: [
          /* @__PURE__ */ a$1("td", { "data-label": "Tool", children: /* @__PURE__ */ a$1("a", { href: href("tools", tool.name), children: tool.name }) }),
          /* @__PURE__ */ a$1("td", { "data-label": "What it does", class: "prose", children: tool.description ?? tool.title ?? "" }),
          /* @__PURE__ */ a$1("td", { "data-label": "Delivery", children: setting(tool, "delivery") }),
          /* @__PURE__ */ a$1("td", { "data-label": "Attempts", children: setting(tool, "retry.max_attempts") }),
          /* @__PURE__ */ a$1("td", { "data-label": "Waits for", children: setting(tool, "wait") })
        ] }, tool.name)) })
      ] }) : /* @__PURE__ */ a$1(Empty, { children: "No server has offered a tool yet." })
    ] }) })
  ] });
}
function OneTool({ name }) {
  const loaded = useLoad(name, (signal) => get(`/api/v1/tools/${encodeURIComponent(name)}`, signal));
  return /* @__PURE__ */ a$1($, { children: [
    /* @__PURE__ */ a$1("p", { class: "back", children: /* @__PURE__ */ a$1("a", { href: href("tools"), children: "← Tools" }) }),
    /* @__PURE__ */ a$1(Shown, { of: loaded, children: (tool) => /* @__PURE__ */ a$1($, { children: [
      /* @__PURE__ */ a$1("h1", { children: tool.name }),
      /* @__PURE__ */ a$1("p", { class: "prose", children: tool.description }),
      /* @__PURE__ */ a$1("p", { children: /* @__PURE__ */ a$1("a", { href: href("executions", void 0, new URLSearchParams({ tool: tool.tool, upstream: tool.upstream })), children: "Its executions" }) }),
      /* @__PURE__ */ a$1("section", { "aria-labelledby": "policy", children: [
        /* @__PURE__ */ a$1("h2", { id: "policy", children: "Settings in force" }),
        /* @__PURE__ */ a$1("table", { class: "rows", children: [
          /* @__PURE__ */ a$1("thead", { children: /* @__PURE__ */ a$1("tr", { children: [
            /* @__PURE__ */ a$1("th", { children: "Setting" }),
            /* @__PURE__ */ a$1("th", { children: "Value" }),
            /* @__PURE__ */ a$1("th", { children: "Said by" })
          ] }) }),
          /* @__PURE__ */ a$1("tbody", { children: Object.keys(tool.policy).map((key) => /* @__PURE__ */ a$1("tr", { children: [
            /* @__PURE__ */ a$1("td", { "data-label": "Setting", children: /* @__PURE__ */ a$1("code", { children: key }) }),
            /* @__PURE__ */ a$1("td", { "data-label": "Value", children: setting(tool, key) }),
            /* @__PURE__ */ a$1("td", { "data-label": "Said by", children: tool.policy[key].source })
          ] }, key)) })
        ] })
      ] }),
      tool.definition && /* @__PURE__ */ a$1(Payload, { name: "Its definition", text: JSON.stringify(tool.definition) })
    ] }) })
  ] });
}
function setting(tool, key) {
  const setting2 = tool.policy[key];
  if (!setting2) return "";
  if (typeof setting2.value_ms === "number") return duration(setting2.value_ms);
  const value = setting2.value;
  if (value === null || value === void 0) return "off";
  if (Array.isArray(value)) return value.length ? value.join(", ") : "none";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
const EVERY_MS = 2e3;
function Workers() {
  const now = useNow();
  const who = useSignal(caller);
  const [draining, setDraining] = d();
  const loaded = useLoad("workers", (signal) => get("/api/v1/workers", signal), EVERY_MS);
  return /* @__PURE__ */ a$1($, { children: [
    /* @__PURE__ */ a$1("h1", { children: "Workers" }),
    /* @__PURE__ */ a$1(Shown, { of: loaded, children: ({ workers }) => workers.length ? /* @__PURE__ */ a$1("table", { class: "rows", children: [
      /* @__PURE__ */ a$1("caption", { class: "hidden", children: "Workers" }),
      /* @__PURE__ */ a$1("thead", { children: /* @__PURE__ */ a$1("tr", { children: [
        /* @__PURE__ */ a$1("th", { children: "Name" }),
        /* @__PURE__ */ a$1("th", { children: "State" }),
        /* @__PURE__ */ a$1("th", { children: "Kind" }),
        /* @__PURE__ */ a$1("th", { children: "Calls" }),
        /* @__PURE__ */ a$1("th", { children: "Tools" }),
        /* @__PURE__ */ a$1("th", { children: "Registered" }),
        /* @__PURE__ */ a$1("th", { children: "Heard of" }),
        /* @__PURE__ */ a$1("th", { children: "Made with" }),
        /* @__PURE__ */ a$1("th", { children: /* @__PURE__ */ a$1("span", { class: "hidden", children: "Orders" }) })
      ] }) }),
      /* @__PURE__ */ a$1("tbody", { children: inOrder(workers).map((worker) => /* @__PURE__ */ a$1("tr", { class: worker.state === "gone" ? "past" : "", children: [
        /* @__PURE__ */ a$1("td", { "data-label": "Name", title: worker.id, children: worker.name }),
        /* @__PURE__ */ a$1("td", { "data-label": "State", children: worker.state }),
        /* @__PURE__ */ a$1("td", { "data-label": "Kind", children: worker.kind }),
        /* @__PURE__ */ a$1("td", { "data-label": "Calls", children: [
          /* @__PURE__ */ a$1("meter", { min: 0, max: worker.slots, value: worker.leased, "aria-label": "Slots in use" }),
          " ",
          worker.leased,
          " of ",
          worker.slots
        ] }),
        /* @__PURE__ */ a$1("td", { "data-label": "Tools", children: worker.tools.length ? worker.tools.join(", ") : "what its process is configured with" }),
        /* @__PURE__ */ a$1("td", { "data-label": "Registered", title: moment(worker.registered_at), children: ago(worker.registered_at, now) }),
        /* @__PURE__ */ a$1("td", { "data-label": "Heard of", children: worker.gone_at ? `gone ${ago(worker.gone_at, now)}` : worker.last_seen_at ? ago(worker.last_seen_at, now) : "in this store" }),
        /* @__PURE__ */ a$1("td", { "data-label": "Made with", children: worker.sdk ?? "" }),
        /* @__PURE__ */ a$1("td", { children: may(who, "operate") && worker.state === "running" && /* @__PURE__ */ a$1("button", { onClick: () => setDraining(worker), children: "Drain…" }) })
      ] }, worker.id)) })
    ] }) : /* @__PURE__ */ a$1(Empty, { children: "No worker has registered." }) }),
    draining && /* @__PURE__ */ a$1(
      Dialog,
      {
        title: `Drain ${draining.name}`,
        act: "Drain it",
        danger: true,
        onAct: async () => {
          await post(`/api/v1/workers/${draining.id}/drain`, {});
          loaded.reload();
        },
        onClose: () => setDraining(void 0),
        children: /* @__PURE__ */ a$1("p", { children: "It finishes the calls it has and takes nothing more. This can not be taken back: the worker has to be started again." })
      }
    )
  ] });
}
function inOrder(workers) {
  const rank = (worker) => worker.state === "gone" ? 1 : 0;
  return [...workers].sort((one, other) => rank(one) - rank(other) || other.registered_at.localeCompare(one.registered_at));
}
const VIEWS = [
  ["executions", "Executions"],
  ["attention", "Needs attention"],
  ["workers", "Workers"],
  ["tools", "Tools"],
  ["sessions", "Sessions"],
  ["connect", "Connect"]
];
const THEMES = ["auto", "light", "dark"];
const theme = new Signal(localStorage.getItem("durable-mcp-theme") ?? "auto");
const showTheme = () => document.documentElement.dataset.theme = theme.value;
theme.watch(() => {
  localStorage.setItem("durable-mcp-theme", theme.value);
  showTheme();
});
showTheme();
function Page() {
  const { view, id } = useSignal(route);
  const known = VIEWS.find(([name]) => name === view);
  A(() => {
    document.title = `${known?.[1] ?? "Not found"} · DurableMCP`;
    document.querySelector("main")?.focus({ preventScroll: true });
    scrollTo(0, 0);
  }, [view, id]);
  return /* @__PURE__ */ a$1($, { children: [
    /* @__PURE__ */ a$1(Top, { view }),
    /* @__PURE__ */ a$1("main", { tabIndex: -1, children: /* @__PURE__ */ a$1(View, { view, id }) }),
    /* @__PURE__ */ a$1(SignIn, {})
  ] });
}
function View({ view, id }) {
  switch (view) {
    case "executions":
      return id === void 0 ? /* @__PURE__ */ a$1(Executions, {}) : /* @__PURE__ */ a$1(Execution, { id }, id);
    case "attention":
      return /* @__PURE__ */ a$1(Attention, {});
    case "workers":
      return /* @__PURE__ */ a$1(Workers, {});
    case "tools":
      return id === void 0 ? /* @__PURE__ */ a$1(Tools, {}) : /* @__PURE__ */ a$1(OneTool, { name: id }, id);
    case "sessions":
      return /* @__PURE__ */ a$1(Sessions, {});
    case "connect":
      return /* @__PURE__ */ a$1(Connect, {});
    default:
      return /* @__PURE__ */ a$1(Empty, { children: [
        "There is no such view. ",
        /* @__PURE__ */ a$1("a", { href: href("executions"), children: "Executions" })
      ] });
  }
}
function Top({ view }) {
  const shown = useSignal(theme);
  return /* @__PURE__ */ a$1("header", { class: "top", children: [
    /* @__PURE__ */ a$1("button", { class: "skip", onClick: () => document.querySelector("main")?.focus(), children: "To the content" }),
    /* @__PURE__ */ a$1("a", { class: "brand", href: href("executions"), children: [
      /* @__PURE__ */ a$1("img", { src: "./icon.svg", alt: "", width: "22", height: "22" }),
      " DurableMCP"
    ] }),
    /* @__PURE__ */ a$1("nav", { "aria-label": "Views", children: VIEWS.map(([name, title]) => /* @__PURE__ */ a$1("a", { href: href(name), "aria-current": view === name ? "page" : void 0, children: [
      title,
      name === "attention" && /* @__PURE__ */ a$1(Unknown, {})
    ] }, name)) }),
    /* @__PURE__ */ a$1("span", { class: "top-right", children: [
      /* @__PURE__ */ a$1(Who, {}),
      /* @__PURE__ */ a$1("button", { onClick: () => theme.value = THEMES[(THEMES.indexOf(shown) + 1) % THEMES.length], title: "Light, dark, or as the system says", children: shown })
    ] })
  ] });
}
const UNKNOWN_SHOWN_MAX = 99;
function decidesAnUnknown(event) {
  return event.type === "lost" || event.by !== void 0 || event.source === "late_result" || event.source === "reconcile";
}
function Unknown() {
  const loaded = useLoad("unknown", (signal) => get(`/api/v1/executions?state=unknown&limit=${UNKNOWN_SHOWN_MAX + 1}`, signal), 3e4);
  useLive("", true, (events, missed) => {
    if (missed || events.some(decidesAnUnknown)) loaded.reload();
  });
  const number = loaded.data?.executions.length ?? 0;
  if (!number) return null;
  return /* @__PURE__ */ a$1("span", { class: "badge", children: number > UNKNOWN_SHOWN_MAX ? `${UNKNOWN_SHOWN_MAX}+` : number });
}
function Who() {
  const token = useSignal(credential);
  const loaded = useLoad("caller", (signal) => get("/api/v1/caller", signal));
  A(() => {
    caller.value = loaded.data;
  }, [loaded.data]);
  const who = loaded.data;
  return /* @__PURE__ */ a$1("span", { class: "who", children: [
    who ? `${who.principal}${who.namespace === "default" ? "" : ` in ${who.namespace}`}` : loaded.problem ? loaded.problem.message : "…",
    " ",
    token ? /* @__PURE__ */ a$1("button", { onClick: () => credential.value = void 0, children: "Forget token" }) : (!who || !who.actions || !who.payloads) && /* @__PURE__ */ a$1("button", { onClick: signIn, children: "Enter a token" })
  ] });
}
Q(/* @__PURE__ */ a$1(Page, {}), document.getElementById("dashboard"));
