// node_modules/preact/dist/preact.mjs
var n;
var t$1;
var u$2;
var i$1;
var f$2;
var o$2;
var e$1;
var l$1;
var c$1;
var a$2;
var h$1 = Symbol.for("pv");
var p$1 = {};
var y$1 = [];
var v$1 = /^m(i|n|o|s|text|space)$/;
var w$1 = Array.isArray;
var d$1 = y$1.slice;
var _$1 = Object.assign;
function g$1(n) {
	n && n.parentNode && n.remove();
}
function m$1(r, u, i, f, o) {
	var e = {
		type: r,
		props: u,
		key: i,
		ref: f,
		__k: null,
		__: null,
		__b: 0,
		__e: null,
		__c: null,
		constructor: h$1,
		__v: o || ++t$1,
		__i: -1,
		__u: 0
	};
	return !o && n.vnode && n.vnode(e), e;
}
function $(n) {
	return n.children;
}
function x(n, t) {
	this.props = n, this.context = t, this.__g = 0;
}
function S(n, t) {
	if (null == t) return n.__ && S(n.__, n.__i + 1);
	for (var r; t < n.__k.length; t++) if ((r = n.__k[t]) && r.__e) return r.__e;
	return "function" != typeof n.type || n.props.__P ? null : S(n);
}
function C$1(t) {
	var r, u = t.__v, i = u.__e, f = [], o = [], e = t.__P;
	e && ((r = _$1({ constructor: h$1 }, u)).__v = u.__v + 1, n.vnode && n.vnode(r), z$1(e, r, u, t.__n, e.namespaceURI, 32 & u.__u ? [i] : null, f, i || S(u), 32 & u.__u, o), r.__v = u.__v, r.__.__k[r.__i] = r, E$1(f, r, o), u.__ = u.__e = null, r.__e != i && j(r));
}
function j(n) {
	if ((n = n.__) && n.__c && !n.props.__P) return n.__e = null, n.__k.some(function(t) {
		return t && (n.__e = t.__e);
	}), j(n);
}
function L(t) {
	(8 & t.__g || (t.__g |= 8, u$2.push(t), f$2++)) && i$1 == n.debounceRendering || ((i$1 = n.debounceRendering) || queueMicrotask)(H);
}
function H() {
	try {
		for (var n, t = 1; u$2.length;) u$2.length > t && u$2.sort(o$2), n = u$2.shift(), t = u$2.length, 8 & n.__g && C$1(n);
	} finally {
		(f$2 = u$2.length) && (i$1 || queueMicrotask)(H);
	}
}
function I(n, t, r, u, i, f, o, e, l, c, a) {
	var s, h, v, w, d, _, g = u.__k || y$1, k = t.length;
	for (l = q(r, t, g, l, k), s = 0; s < k; s++) null != (v = r.__k[s]) && (h = ~v.__i && g[v.__i] || p$1, v.__i = s, _ = z$1(n, v, h, i, f, o, e, l, c, a), w = v.__e, (h.ref != v.ref || 8 & h.__u) && (h.ref && G$1(h.ref, null, v, h), v.ref && a.push(v.ref, v.__c || w, v)), d = d || w, 4 & v.__u ? (l = A$1(v, l, n, !h.__v), h.__e && (h.__e = null)) : "function" == typeof v.type && void 0 !== _ ? l = _ : w && (l = w.nextSibling), v.__u &= -21);
	return r.__e = d, l;
}
function q(n, t, r, u, i) {
	var f, o, e, l, c, a, s, p, y, v = r.length, d = v, _ = 0, g = 0, k = n.__k = Array(i);
	for (f = 0; f < i; f++) null != (o = t[f]) && "boolean" != typeof o && "function" != typeof o ? ("object" != typeof o || o.constructor === String ? o = k[f] = m$1(null, o) : w$1(o) ? o = k[f] = m$1($, { children: o }) : o.constructor === h$1 && o.__b ? o = k[f] = m$1(o.type, o.props, o.key, o.ref, o.__v) : k[f] = o, l = f + _, o.__ = n, o.__b = n.__b + 1, e = null, ~(c = o.__i = P(o, r, l, d)) && (d--, (e = r[c]) && (e.__u |= 2)), e && e.__v ? (o.__u |= 16, c == l - 1 ? _-- : c == l + 1 ? _++ : c != l && (c > l ? _-- : _++, g = 1)) : (~c || (i > v ? _-- : i < v && _++), "function" != typeof o.type && (o.__u |= 4))) : k[f] = null;
	if (g) {
		for (a = [], s = [], f = 0; f < i; f++) if ((o = k[f]) && 16 & o.__u) {
			for (_ = 0, p = a.length; _ < p;) a[y = _ + p >> 1] < o.__i ? _ = y + 1 : p = y;
			a[_] = o.__i, s[f] = _ + 1;
		}
		for (_ = a.length; f--;) s[f] && (s[f] == _ ? _-- : k[f].__u |= 4);
	}
	if (d) for (f = 0; f < v; f++) !(e = r[f]) || 2 & e.__u || (e.__e == u && (u = S(e)), J(e, e));
	return u;
}
function A$1(n, t, r, u) {
	var i, f, o, e;
	if ("function" == typeof n.type) {
		if (n.props.__P) return t;
		if (i = n.__k) for (f = 0; f < i.length; f++) i[f] && (i[f].__ = n, t = A$1(i[f], t, r, !1));
		return t;
	}
	for (t && !t.parentNode && (t = S(n)) && !t.parentNode && (t = null), o = n.__e, e = t; e && 8 == e.nodeType;) e = e.nextSibling;
	for (o != e && (!u && r.moveBefore && o.parentNode ? r.moveBefore(o, t) : r.insertBefore(o, t || null)), t = o; (t = t && t.nextSibling) && 8 == t.nodeType && !t.data.startsWith("$s"););
	return t;
}
function P(n, t, r, u) {
	var i, f = n.key, o = n.type, e = t[r], l = e && !(2 & e.__u);
	if (null === e && null == f || l && f == e.key && o == e.type) return r;
	if (u > (l ? 1 : 0)) {
		for (i = r - 1; i >= 0; i--) if ((e = t[i]) && !(2 & e.__u) && f == e.key && o == e.type) return i;
		for (i = r + 1; i < t.length; i++) if ((e = t[i]) && !(2 & e.__u) && f == e.key && o == e.type) return i;
	}
	return -1;
}
function T$1(n, t, r) {
	r ??= "", "-" == t[0] ? n.setProperty(t, r) : n[t] = r;
}
function N(n, t, r, u, i) {
	var f, o;
	if ("style" == t) if ("string" == typeof r) n.style.cssText = r;
	else {
		if ("string" == typeof u && (n.style.cssText = u = ""), u) for (t in u) r && t in r || T$1(n.style, t);
		if (r) for (t in r) u && r[t] == u[t] || T$1(n.style, t, r[t]);
	}
	else if ("o" == t[0] && "n" == t[1]) "function" != typeof r && (r = null), "function" != typeof u && (u = null), (n.__e || (n.__e = {}))[t] = r, r && u || (o = a$2[t] || (a$2[t] = V(t)), (n.__a || (n.__a = {}))[t] = c$1, f = t != (t = t.replace(l$1, "$1")), (t = t.slice(2))[0] < "a" && (t = t.toLowerCase()), r ? n.addEventListener(t, o, f) : n.removeEventListener(t, o, f));
	else {
		if ("http://www.w3.org/2000/svg" == i) t = t.replace(/xlink(H|:h)/, "h").replace(/sName$/, "s");
		else if ("width" != t && "height" != t && "href" != t && "list" != t && "form" != t && "tabIndex" != t && "download" != t && "rowSpan" != t && "colSpan" != t && "role" != t && "popover" != t && t in n) try {
			n[t] = null == r ? "" : r;
			return;
		} catch (n) {}
		if ("function" == typeof r) return;
		null == r || !1 === r && "-" != t[4] ? n.removeAttribute(t) : n.setAttribute(t, "popover" == t && 1 == r ? "" : r);
	}
}
function V(t) {
	return function(r) {
		var u = this.__e;
		if (u) {
			if (u = u[t], null == r[e$1]) r[e$1] = c$1++;
			else if (r[e$1] < this.__a[t]) return;
			return u(n.event ? n.event(r) : r);
		}
	};
}
function z$1(t, r, u, i, f, o, e, l, c, a) {
	var s, p, v, d, k, b, m, M, C, j, L, H, q, A, O, P, T, N, V = r.type;
	if (r.constructor !== h$1) return null;
	128 & u.__u && (c = 32 & u.__u, s = u.__c.__z) && (r.__u |= c, p = o = [], 8 == s.nodeType ? l = B$1(s, o) : o.push(s), l = o[0] || l), (s = n.__b) && s(r);
	n: if ("function" == typeof V) {
		v = e.length;
		try {
			if (M = r.props, C = (s = V.prototype) && s.render, j = (s = V.contextType) && i[s.__c], L = s ? j ? j.props.value : s.__ : i, (d = u.__c) ? (r.__c = d, 2 & d.__g && (d.__g |= 1)) : (C ? r.__c = d = new V(M, L) : (r.__c = d = new x(M, L), d.constructor = V, d.render = K), j && j.sub(d), d.state || (d.state = {}), d.__n = i, d.__g |= 8, d.__h = [], d.__k = []), C && (d.__s || (d.__s = d.state), V.getDerivedStateFromProps && (d.__s == d.state && (d.__s = _$1({}, d.__s)), _$1(d.__s, V.getDerivedStateFromProps(M, d.__s)))), k = d.props, b = d.state, d.__v = r, u.__c) {
				if (M !== k && C && !V.getDerivedStateFromProps && d.componentWillReceiveProps && d.componentWillReceiveProps(M, L), r.__v == u.__v && !(8 & d.__g) || !(4 & d.__g) && d.shouldComponentUpdate && !1 === d.shouldComponentUpdate(M, d.__s, L)) {
					r.__v != u.__v && (d.props = M, d.state = d.__s, d.__g &= -9), r.__e = u.__e, r.__k = u.__k, r.__k.some(function(n) {
						n && (n.__ = r);
					}), y$1.push.apply(d.__h, d.__k), d.__k = [], d.__h.length && e.push(d), l = S(u);
					break n;
				}
				d.componentWillUpdate && d.componentWillUpdate(M, d.__s, L), C && d.componentDidUpdate && d.__h.push(function() {
					d.componentDidUpdate(k, b, m);
				});
			} else C && !V.getDerivedStateFromProps && d.componentWillMount && d.componentWillMount(), C && d.componentDidMount && d.__h.push(d.componentDidMount);
			d.context = L, d.props = M, d.__P = t, d.__g &= -5, H = n.__r, q = C ? 25 : 0;
			do
				d.__g &= -9, H && H(r), s = d.render(d.props, d.state = d.__s, d.context);
			while (8 & d.__g && ++q < 25);
			C && (y$1.push.apply(d.__h, d.__k), d.__k = []), d.state = d.__s, d.getChildContext && (i = _$1({}, i, d.getChildContext())), C && u.__c && d.getSnapshotBeforeUpdate && (m = d.getSnapshotBeforeUpdate(k, b)), A = s && s.type === $ && null == s.key ? s.props.children : s, M.__P && (s = l, f = (t = M.__P).namespaceURI, c = o = null, u.props && u.props.__P != t && (u.__k.some(function(n) {
				n && J(n, n);
			}), u.__k = null), l = u.__k ? S(u, 0) : null), l = I(t, w$1(A) ? A : [A], r, u, i, f, o, e, l, c, a), M.__P && (r.__e = null, l = s), r.__u &= -161, p && p.some(g$1), d.__h.length && e.push(d), 1 & d.__g && (d.__g &= -4);
		} catch (t) {
			if (e.length = v, r.__v = null, c || o) if (t && t.then) {
				if (r.__u |= 128 | c, o) {
					for (~(T = o.indexOf(l || void 0)) || (T = o.length); (N = o[T - 1]) && 8 == N.nodeType;) T--;
					for (; T < o.length; T++) if (N = o[T]) if (o[T] = null, O) {
						if (N == P) break;
					} else {
						if (8 != N.nodeType) break;
						N.data.startsWith("$s") && (P = B$1(O = N));
					}
				}
				if (!O) {
					for (; l && 8 == l.nodeType && l.nextSibling;) l = l.nextSibling;
					O = l;
				}
				(s = B$1(O = r.__c.__z || (r.__c.__z = O))) ? (r.__e = O, l = s) : r.__e = l, l = l && l.nextSibling;
			} else o && o.some(g$1);
			else r.__e = u.__e;
			r.__k || (r.__k = u.__k || []), t && t.then || D$1(r), n.__e(t, r, u);
		}
	} else l = r.__e = F(u.__e, r, u, i, f, o, e, c, a, t);
	return (s = n.diffed) && s(r), l;
}
function B$1(n, t) {
	if (n && 8 == n.nodeType && n.data.startsWith("$s")) for (var r = 1; n = n.nextSibling;) {
		if (8 == n.nodeType) {
			if (n.data.startsWith("$s")) r++;
			else if (n.data.startsWith("/$s") && !--r) return n;
		}
		t && t.push(n);
	}
}
function D$1(n) {
	n && (n.__c && (n.__c.__g |= 4), n.__k && n.__k.some(D$1));
}
function E$1(t, r, u) {
	for (var i = 0; i < u.length;) G$1(u[i++], u[i++], u[i++]);
	n.__c && n.__c(r, t), t.some(function(r) {
		try {
			t = r.__h, r.__h = [], t.some(function(n) {
				n.call(r);
			});
		} catch (t) {
			n.__e(t, r.__v);
		}
	});
}
function F(t, r, u, i, f, o, e, l, c, a) {
	var s, h, y, _, k, b, m, M, $ = u.props || p$1, x = r.props, C = r.type;
	if ("svg" == C ? f = "http://www.w3.org/2000/svg" : "math" == C ? f = "http://www.w3.org/1998/Math/MathML" : f || (f = "http://www.w3.org/1999/xhtml"), o) {
		for (s = 0; s < o.length; s++) if ((k = o[s]) && (C ? k.localName == C : 3 == k.nodeType)) {
			t = k, o[s] = null;
			break;
		}
	}
	if (!t) {
		if (M = a.ownerDocument || document, !C) return M.createTextNode(x);
		t = M.createElementNS(f, C, x.is ? x : a), l && (n.__m && n.__m(r, o), l = !1), o = null;
	}
	if (C) {
		if (a = "template" == C && t.content || t, o = "textarea" == C && null != x.defaultValue ? null : o && d$1.call(a.childNodes), !l && o) for ($ = {}, s = 0; s < t.attributes.length; s++) $[(k = t.attributes[s]).name] = k.value;
		for (s in $) k = $[s], "dangerouslySetInnerHTML" == s ? y = k : "children" == s || s in x || "value" == s && "defaultValue" in x || "checked" == s && "defaultChecked" in x || N(t, s, null, k, f);
		for (s in x) k = x[s], "children" == s ? _ = k : "dangerouslySetInnerHTML" == s ? h = k : "value" == s ? b = k : "checked" == s ? m = k : l && "function" != typeof k || $[s] === k || N(t, s, k, $[s], f);
		h ? (l || y && (h.__html == y.__html || h.__html == t.innerHTML) || (t.innerHTML = h.__html), r.__k = []) : (y && (t.textContent = ""), ("foreignObject" == C || "http://www.w3.org/1998/Math/MathML" == f && v$1.test(C)) && (f = "http://www.w3.org/1999/xhtml"), I(a, w$1(_) ? _ : [_], r, u, i, f, o, e, o ? o[0] : u.__k && S(u, 0), l, c), o && o.some(g$1)), l && "textarea" != C || (s = "value", "progress" == C && null == b ? t.removeAttribute(s) : null == b || b === t[s] && ("progress" != C || b) || N(t, s, b, $[s], f), s = "checked", null != m && m != t[s] && N(t, s, m, $[s], f));
	} else $ === x || l && t.data == x || (t.data = x);
	return t;
}
function G$1(t, r, u, i) {
	try {
		"function" == typeof t ? r ? r.__x = t(r) || 1 : i && (i = i.__c || i.__e) && (r = i.__x) && (i.__x = null, "function" == typeof r ? r() : t(null)) : t.current = r;
	} catch (t) {
		n.__e(t, u);
	}
}
function J(t, r, u) {
	var i, f, o, e;
	if (n.unmount && n.unmount(t), !(i = t.ref) || i.current && i.current != t.__e || G$1(i, null, r, t), i = t.__c) {
		if (i.componentWillUnmount) try {
			i.componentWillUnmount();
		} catch (t) {
			n.__e(t, r);
		}
		i.__P = i.__n = null;
	}
	if (i = t.__k) for (e = 0; e < i.length; e++) i[e] && J(i[e], r, "function" != typeof t.type || u && !t.props.__P);
	!u && (i = t.__c) && (i = i.__z) && (f = B$1(i, o = [])) && (i == t.__e && o.some(g$1), g$1(f), g$1(i)), u || g$1(t.__e), t.__e = t.__c = t.__ = null;
}
function K(n, t, r) {
	return this.constructor(n, r);
}
function Q(t, r) {
	var u, i, f, o;
	n.__ && n.__(t, r), 9 == r.nodeType && (r = r.documentElement), i = (u = t && 32 & t.__u) ? null : r.__k, r.__k = m$1($, { children: [t] }), f = [], o = [], z$1(r, r.__k, i || p$1, p$1, r.namespaceURI, i ? null : r.firstChild ? d$1.call(r.childNodes) : null, f, i ? i.__e : r.firstChild, u, o), E$1(f, r.__k, o), r.__k.props.children = null;
}
n = { __e: function(n, t, r, u) {
	for (var i, o, e; t = t.__;) if ((i = t.__c) && !(1 & i.__g)) {
		i.__g |= 4;
		try {
			if ((e = (o = i.constructor) && o.getDerivedStateFromError) && i.setState(o.getDerivedStateFromError(n)), i.componentDidCatch && (i.componentDidCatch(n, u || {}), e = 1), e && 8 & i.__g) return void (i.__g |= 2);
		} catch (t) {
			n = t;
		}
	}
	throw f$2 = 0, n;
} }, t$1 = 0, x.prototype.setState = function(n, t) {
	var r = this.__s;
	r && r != this.state || (r = this.__s = _$1({}, this.state)), "function" == typeof n && (n = n(_$1({}, r), this.props)), n && (_$1(r, n), this.__v && (t && this.__k.push(t), L(this)));
}, x.prototype.forceUpdate = function(n) {
	this.__v && (this.__g |= 4, n && this.__h.push(n), L(this));
}, x.prototype.render = $, u$2 = [], f$2 = 0, o$2 = function(n, t) {
	return n.__v.__b - t.__v.__b;
}, e$1 = Symbol(), l$1 = /(PointerCapture)$|Capture$/i, c$1 = 0, a$2 = {};
// node_modules/preact/hooks/dist/hooks.mjs
var t;
var r;
var u$1;
var i;
var o$1 = Object.is;
var f$1 = 0;
var c = [];
var e = [];
var a$1 = n;
var v = a$1.__b;
var l = a$1.__r;
var m = a$1.diffed;
var h = a$1.__c;
var s = a$1.unmount;
var p = a$1.__;
function y(n, t) {
	a$1.__h && a$1.__h(r, n, f$1 || t), f$1 = 0;
	var u = r.__H || (r.__H = {
		__: [],
		__h: []
	});
	return n >= u.__.length && u.__.push({}), u.__[n];
}
function d(n) {
	return f$1 = 1, _(G, n);
}
function _(n, u, i) {
	var f = y(t++, 2);
	if (f.t = n, !f.__c && (f.__ = [i ? i(u) : G(void 0, u), function(n) {
		var t = (f.__N || f.__)[0], r = f.t(t, n);
		o$1(t, r) || (f.__N = [r, f.__[1]], f.__c.setState({}));
	}], f.__c = r, !r.__f)) {
		r.__f = !0;
		var c = r.shouldComponentUpdate;
		r.shouldComponentUpdate = function(n, t, r) {
			var u = this.__H;
			if (!u) return !0;
			var i = !1, f = this.props != n;
			if (u.__.some(function(n) {
				n.__N && (i = !0, o$1(n.__[0], n.__N[0]) || (f = !0));
			}), c) {
				var e = c.call(this, n, t, r);
				return i ? e || f : e;
			}
			return !i || f;
		};
	}
	return f.__;
}
function A(n, u) {
	var i = y(t++, 3);
	!a$1.__s && E(i.__H, u) && (i.__P = !0, i.__ = n, i.u = u, r.__H.__h.push(i));
}
function T(n) {
	return f$1 = 5, w(function() {
		return { current: n };
	}, []);
}
function w(n, r) {
	var u = y(t++, 7);
	return E(u.__H, r) && (u.__ = n(), u.__H = r), u.__;
}
function b(n, t) {
	return f$1 = 8, w(function() {
		return n;
	}, t);
}
function g() {
	var n;
	do {
		for (; n = e.shift();) try {
			C(n);
		} catch (t) {
			a$1.__e(t, { __: (n = n.__P) && n.__v });
		}
		for (; n = c.shift();) {
			var t = n.__H;
			if (n.__P && t) try {
				t.__h.some(C), t.__h.some(D), t.__h = [];
			} catch (r) {
				t.__h = [], a$1.__e(r, n.__v);
			}
		}
	} while (e.length);
}
a$1.__b = function(n) {
	r = null, v && v(n);
}, a$1.__ = function(n, t) {
	n && t.__k && t.__k.__m && (n.__m = t.__k.__m), p && p(n, t);
}, a$1.__r = function(n) {
	l && l(n), t = 0;
	var i = (r = n.__c).__H;
	i && (u$1 == r ? r.__h = [] : (i.__h.some(C), i.__h.some(D), t = 0), i.__h = [], i.__.some(function(n) {
		n.__N && (n.__ = n.__N), n.u = n.__N = void 0;
	})), u$1 = r;
}, a$1.diffed = function(n) {
	m && m(n);
	var t = n.__c;
	t && t.__H && (t.__H.__h.length && B(c.push(t)), t.__H.__.some(function(n) {
		n.u && (n.__H = n.u);
	})), u$1 = r = null;
}, a$1.__c = function(n, t) {
	t.some(function(n) {
		try {
			n.__h.some(C), n.__h = n.__h.filter(function(n) {
				return !n.__ || D(n);
			});
		} catch (t) {
			n.__h = [function() {
				throw t;
			}];
		}
	}), h && h(n, t);
}, a$1.unmount = function(n) {
	s && s(n);
	var t, r, u = n.__c;
	u && u.__H && (u.__H.__.some(function(u) {
		try {
			if (u.__P && u.__c) {
				if (void 0 === r) {
					for (r = n.__; r && (!r.__c || !r.__c.__P);) r = r.__;
					r = r && r.__c;
				}
				u.__P = r, B(e.push(u));
			} else C(u);
		} catch (n) {
			t = n;
		}
	}), u.__H = void 0, t && a$1.__e(t, u.__v));
};
var k = "function" == typeof requestAnimationFrame;
function z(n) {
	var t, r = function() {
		clearTimeout(u), k && cancelAnimationFrame(t), setTimeout(n);
	}, u = setTimeout(r, 35);
	k && (t = requestAnimationFrame(r));
}
function B(n) {
	1 != n && i == a$1.requestAnimationFrame || ((i = a$1.requestAnimationFrame) || z)(g);
}
function C(n) {
	var t = r, u = n.__c;
	"function" == typeof u && (n.__c = void 0, u()), r = t;
}
function D(n) {
	var t = r;
	n.__c = n.__(), r = t;
}
function E(n, t) {
	return !n || n.length != t.length || t.some(function(t, r) {
		return !o$1(t, n[r]);
	});
}
function G(n, t) {
	return "function" == typeof t ? t(n) : t;
}
// src/signal.ts
var Signal = class {
	current;
	watchers = /* @__PURE__ */ new Set();
	constructor(current) {
		this.current = current;
	}
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
};
/** The value, in a view that is drawn again when it changes. */
function useSignal(signal) {
	const [, redraw] = d(0);
	A(() => signal.watch(() => redraw((count) => count + 1)), [signal]);
	return signal.value;
}
// src/access.ts
var KEY = "durable-mcp-credential";
/** The bearer credential, if one was given. */
var credential = new Signal(sessionStorage.getItem(KEY) ?? void 0);
credential.watch(() => {
	if (credential.value) sessionStorage.setItem(KEY, credential.value);
	else sessionStorage.removeItem(KEY);
});
/** Who the server says the caller is; absent until it said so. */
var caller = new Signal(void 0);
/** Whether the caller may do something. The server decides again for each request: this only spares useless buttons. */
function may(who, scope) {
	if (!who) return false;
	if (scope === "payloads") return who.payloads;
	return who.actions && who.scopes.some((held) => held === scope || held === "operate" || held === "admin");
}
// src/api.ts
/** Why a request was not answered as asked: the server's problem, or that it could not be reached. */
var Problem = class extends Error {
	code;
	status;
	next;
	constructor(code, status, detail, next) {
		super(detail);
		this.code = code;
		this.status = status;
		this.next = next;
	}
};
var unreachable = () => new Problem("unreachable", 0, "The server does not answer.", "Check that it runs; the page tries again by itself.");
/** The address of a route, relative to where the page was loaded from. */
function address(path) {
	return new URL(path.replace(/^\//, ""), document.baseURI.replace(/[?#].*$/, "")).href;
}
function headers(more = {}) {
	const token = credential.value;
	return token ? {
		...more,
		authorization: `Bearer ${token}`
	} : more;
}
async function problemOf(response) {
	const body = await response.json().catch(() => null);
	return new Problem(body?.code ?? `http_${response.status}`, response.status, body?.detail ?? `The server answered ${response.status}.`, body?.next ?? "");
}
async function send(path, init) {
	const response = await fetch(address(path), {
		cache: "no-store",
		...init
	}).catch((error) => {
		throw init.signal?.aborted ? error : unreachable();
	});
	if (!response.ok) throw await problemOf(response);
	return response;
}
async function get(path, signal) {
	return (await send(path, {
		headers: headers(),
		...signal && { signal }
	})).json();
}
async function getText(path, signal) {
	return (await send(path, {
		headers: headers(),
		...signal && { signal }
	})).text();
}
async function post(path, body) {
	return (await send(path, {
		method: "POST",
		headers: headers({ "content-type": "application/json" }),
		body: JSON.stringify(body)
	})).json();
}
/**
* Follows events from now on, over lost connections, until `signal` aborts. `told` hears of each event once; `alive`
* of each change between followed and not. The browser's own EventSource can not send a credential.
*/
async function follow(query, told, alive, signal) {
	let cursor;
	let pause = PAUSE_MIN_MS;
	while (!signal.aborted) {
		try {
			const wanted = headers({
				accept: "text/event-stream",
				...cursor && { "last-event-id": cursor }
			});
			const response = await send(`/api/v1/events?${query}`, {
				headers: wanted,
				signal
			});
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
var PAUSE_MIN_MS = 250;
var PAUSE_MAX_MS = 1e4;
/** The blocks of a stream of server-sent events. */
async function* blocks(body) {
	const reader = body.pipeThrough(new TextDecoderStream()).getReader();
	let rest = "";
	for (;;) {
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
				if (name === "data") block.data = block.data === void 0 ? text : `${block.data}\n${text}`;
			}
			yield block;
		}
	}
}
// src/live.ts
var TELL_EVERY_MS = 250;
/** Events of one telling; a view that gets more is told that it missed some, and asks anew. */
var TOLD_MAX = 500;
/** Follows what `query` selects while `on`; absent: everything the caller may see. */
function useLive(query, on, told) {
	const token = useSignal(credential);
	const [live, setLive] = d({
		alive: false,
		problem: void 0
	});
	const latest = T(told);
	latest.current = told;
	A(() => {
		if (!on) {
			setLive({
				alive: false,
				problem: void 0
			});
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
		follow(new URLSearchParams(query), hear, (alive, problem) => setLive({
			alive,
			problem
		}), stop.signal);
		return () => {
			stop.abort();
			clearTimeout(timer);
		};
	}, [
		query,
		on,
		token
	]);
	return live;
}
// src/load.ts
/** Loads when `key` or the credential changes, on `reload`, and every `everyMs` while the page is seen. */
function useLoad(key, load, everyMs) {
	const token = useSignal(credential);
	const [round, setRound] = d(0);
	const [state, setState] = d({
		key,
		loading: true
	});
	const latest = T(load);
	latest.current = load;
	A(() => {
		const stop = new AbortController();
		setState((before) => before.key === key ? {
			...before,
			loading: true
		} : {
			key,
			loading: true
		});
		latest.current(stop.signal).then((data) => setState({
			key,
			data,
			loading: false
		}), (error) => {
			if (stop.signal.aborted) return;
			const problem = error instanceof Problem ? error : new Problem("page", 0, String(error), "Reload the page.");
			setState((before) => ({
				...before,
				problem,
				loading: false
			}));
		});
		return () => stop.abort();
	}, [
		key,
		token,
		round
	]);
	const reload = b(() => setRound((round) => round + 1), []);
	A(() => {
		if (!everyMs) return;
		const timer = setInterval(() => document.visibilityState === "visible" && reload(), everyMs);
		return () => clearInterval(timer);
	}, [everyMs, reload]);
	const current = state.key === key ? state : {
		loading: true,
		data: void 0,
		problem: void 0
	};
	return {
		data: current.data,
		problem: current.problem,
		loading: current.loading,
		reload
	};
}
/** The present, for ages; ticks each second while the page is seen. */
function useNow() {
	const [now, setNow] = d(Date.now());
	A(() => {
		const timer = setInterval(() => document.visibilityState === "visible" && setNow(Date.now()), 1e3);
		return () => clearInterval(timer);
	}, []);
	return now;
}
// node_modules/preact/jsx-runtime/dist/jsxRuntime.mjs
var f = Symbol.for("pv");
var o = 0;
Array.isArray;
function a(t, e, n$1, u, a, i) {
	e || (e = {});
	var c, l, p = e;
	if ("ref" in p && "function" != typeof t) for (l in p = {}, e) "ref" == l ? c = e[l] : p[l] = e[l];
	var s = {
		type: t,
		props: p,
		key: n$1,
		ref: c,
		__k: null,
		__: null,
		__b: 0,
		__e: null,
		__c: null,
		constructor: f,
		__v: --o,
		__i: -1,
		__u: 0
	};
	return (a || i) && (s.__source = a, s.__self = i), n.vnode && n.vnode(s), s;
}
// src/parts/dialog.tsx
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
	return /* @__PURE__ */ a("dialog", {
		ref: dialog,
		onClose,
		"aria-labelledby": "dialog-title",
		children: /* @__PURE__ */ a("form", {
			method: "dialog",
			onSubmit: submit,
			children: [
				/* @__PURE__ */ a("h2", {
					id: "dialog-title",
					children: title
				}),
				children,
				problem && /* @__PURE__ */ a("p", {
					class: "dialog-problem",
					role: "alert",
					children: [
						problem.message,
						" ",
						problem.next
					]
				}),
				/* @__PURE__ */ a("p", {
					class: "dialog-acts",
					children: [/* @__PURE__ */ a("button", {
						type: "button",
						onClick: () => dialog.current?.close(),
						children: "Back"
					}), /* @__PURE__ */ a("button", {
						type: "submit",
						class: danger ? "danger" : "primary",
						disabled: busy || !ready,
						children: act
					})]
				})
			]
		})
	});
}
// src/parts/sign-in.tsx
var open = new Signal(false);
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
	return /* @__PURE__ */ a(Dialog, {
		title: "Enter a token",
		act: "Use it",
		ready: token.trim() !== "",
		onAct: async () => void (credential.value = token.trim()),
		onClose: close,
		children: [/* @__PURE__ */ a("p", { children: [
			"An API key (",
			/* @__PURE__ */ a("code", { children: "durable-mcp token create" }),
			"), or, on a server without authentication, the token in its data folder:",
			" ",
			/* @__PURE__ */ a("code", { children: "servers/<host>_<port>.token" }),
			". It is forgotten when this tab is closed."
		] }), /* @__PURE__ */ a("label", { children: ["Token", /* @__PURE__ */ a("input", {
			type: "password",
			autocomplete: "off",
			value: token,
			onInput: (e) => setToken(e.currentTarget.value)
		})] })]
	});
}
// src/parts/notice.tsx
function Failure({ problem, reload }) {
	const credentialHelps = [
		"unauthorized",
		"local_token_needed",
		"insufficient_scope"
	].includes(problem.code);
	return /* @__PURE__ */ a("div", {
		class: "notice notice-failure",
		role: "alert",
		children: [
			/* @__PURE__ */ a("strong", { children: problem.message }),
			problem.next && /* @__PURE__ */ a("p", { children: problem.next }),
			/* @__PURE__ */ a("p", {
				class: "notice-acts",
				children: [
					credentialHelps && /* @__PURE__ */ a("button", {
						onClick: signIn,
						children: "Enter a token"
					}),
					reload && /* @__PURE__ */ a("button", {
						onClick: reload,
						children: "Try again"
					}),
					/* @__PURE__ */ a("code", { children: problem.code })
				]
			})
		]
	});
}
function Empty({ children }) {
	return /* @__PURE__ */ a("div", {
		class: "notice notice-empty",
		children
	});
}
function Loading() {
	return /* @__PURE__ */ a("div", {
		class: "notice notice-loading",
		role: "status",
		children: [/* @__PURE__ */ a("span", {
			class: "spinner",
			"aria-hidden": "true"
		}), " Loading…"]
	});
}
/** Data once it is there; a failure stands above data that was there before. */
function Shown({ of, children }) {
	return /* @__PURE__ */ a($, { children: [of.problem && /* @__PURE__ */ a(Failure, {
		problem: of.problem,
		reload: of.reload
	}), of.data !== void 0 ? children(of.data) : of.loading && !of.problem && /* @__PURE__ */ a(Loading, {})] });
}
// src/route.ts
function read() {
	const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?");
	const [view = "", id] = path.split("/");
	return {
		view: view || "executions",
		id: id ? decodeURIComponent(id) : void 0,
		query: new URLSearchParams(query)
	};
}
var route = new Signal(read());
addEventListener("hashchange", () => route.value = read());
/** The address of a place. */
function href(view, id, query) {
	const text = query?.toString();
	return `#/${view}${id === void 0 ? "" : `/${encodeURIComponent(id)}`}${text ? `?${text}` : ""}`;
}
/** Changes the query of the place one is at. A filter that is typed makes no history. */
function setQuery(query) {
	const { view, id } = route.value;
	history.replaceState(null, "", href(view, id, query));
	route.value = read();
}
// src/words.ts
/** `1.2 s`, `3 min 5 s`. */
function duration(ms) {
	if (ms < 0) return "–";
	if (ms < 1e3) return `${Math.round(ms)} ms`;
	if (ms < 1e4) return `${(ms / 1e3).toFixed(1)} s`;
	if (ms < 6e4) return `${Math.round(ms / 1e3)} s`;
	for (const [below, unit, unitMs, lesser] of [
		[
			36e5,
			"min",
			6e4,
			"s"
		],
		[
			864e5,
			"h",
			36e5,
			"min"
		],
		[
			1e400,
			"d",
			864e5,
			"h"
		]
	]) if (ms < below) {
		const whole = Math.floor(ms / unitMs);
		const lesserMs = {
			s: 1e3,
			min: 6e4,
			h: 36e5
		}[lesser];
		const rest = Math.floor((ms - whole * unitMs) / lesserMs);
		return rest ? `${whole} ${unit} ${rest} ${lesser}` : `${whole} ${unit}`;
	}
	return "–";
}
/** `12 s ago`. */
function ago(at, now) {
	const ms = now - Date.parse(at);
	return ms < 1e3 ? "now" : `${duration(ms < 6e4 ? Math.floor(ms / 1e3) * 1e3 : ms).replace(/\.0 s/, " s")} ago`;
}
var clockFormat = new Intl.DateTimeFormat(void 0, {
	hour: "2-digit",
	minute: "2-digit",
	second: "2-digit",
	hour12: false
});
var dayFormat = new Intl.DateTimeFormat(void 0, {
	year: "numeric",
	month: "short",
	day: "2-digit"
});
/** The time of day with milliseconds, in the reader's zone. */
function clock(at) {
	const date = new Date(at);
	return `${clockFormat.format(date)}.${String(date.getMilliseconds()).padStart(3, "0")}`;
}
/** Day and time in the reader's zone. */
function moment(at) {
	return `${dayFormat.format(new Date(at))}, ${clock(at)}`;
}
/** `1 worker`, `2 workers`. */
function count(number, one, many = `${one}s`) {
	return `${number.toLocaleString()} ${number === 1 ? one : many}`;
}
function bytes(number) {
	if (number < 1024) return `${number} B`;
	if (number < 1048576) return `${(number / 1024).toFixed(1)} KiB`;
	return `${(number / 1048576).toFixed(1)} MiB`;
}
// src/parts/state.tsx
var MARKS = {
	scheduled: "◷",
	ready: "○",
	leased: "▶",
	waiting: "?",
	completed: "✓",
	failed: "✕",
	cancelled: "–",
	unknown: "!"
};
var STATES = Object.keys(MARKS);
function State({ state, isError }) {
	const shown = isError ? `${state}, with an error` : state;
	return /* @__PURE__ */ a("span", {
		class: `state state-${state}${isError ? " state-error" : ""}`,
		children: [
			/* @__PURE__ */ a("span", {
				"aria-hidden": "true",
				children: MARKS[state] ?? "·"
			}),
			" ",
			shown
		]
	});
}
/** Ended, or waits for a person: nothing more happens by itself. */
function isSettled(execution) {
	return [
		"completed",
		"failed",
		"cancelled",
		"unknown"
	].includes(execution.state);
}
// src/parts/execution-table.tsx
function ExecutionTable({ rows, now, selected, onSelect }) {
	const toggle = (id) => {
		const changed = new Set(selected);
		if (!changed.delete(id)) changed.add(id);
		onSelect?.(changed);
	};
	return /* @__PURE__ */ a("table", {
		class: "rows",
		children: [
			/* @__PURE__ */ a("caption", {
				class: "hidden",
				children: "Executions, newest first"
			}),
			/* @__PURE__ */ a("thead", { children: /* @__PURE__ */ a("tr", { children: [
				onSelect && /* @__PURE__ */ a("th", { children: /* @__PURE__ */ a("input", {
					type: "checkbox",
					"aria-label": "Select all shown",
					checked: rows.length > 0 && rows.every((row) => selected?.has(row.id)),
					onChange: (event) => onSelect(new Set(event.currentTarget.checked ? rows.map((row) => row.id) : []))
				}) }),
				/* @__PURE__ */ a("th", { children: "State" }),
				/* @__PURE__ */ a("th", { children: "Tool" }),
				/* @__PURE__ */ a("th", { children: "Submitted" }),
				/* @__PURE__ */ a("th", { children: "Took" }),
				/* @__PURE__ */ a("th", { children: "Attempt" }),
				/* @__PURE__ */ a("th", { children: "Principal" }),
				/* @__PURE__ */ a("th", { children: "Last error" }),
				/* @__PURE__ */ a("th", { children: "Id" })
			] }) }),
			/* @__PURE__ */ a("tbody", { children: rows.map((row) => /* @__PURE__ */ a("tr", { children: [
				onSelect && /* @__PURE__ */ a("td", { children: /* @__PURE__ */ a("input", {
					type: "checkbox",
					"aria-label": `Select ${row.id}`,
					checked: selected?.has(row.id) ?? false,
					onChange: () => toggle(row.id)
				}) }),
				/* @__PURE__ */ a("td", {
					"data-label": "State",
					children: /* @__PURE__ */ a(State, {
						state: row.state,
						isError: row.is_error ?? null
					})
				}),
				/* @__PURE__ */ a("td", {
					"data-label": "Tool",
					children: /* @__PURE__ */ a("span", { children: [
						/* @__PURE__ */ a("a", {
							class: "tool",
							href: href("executions", row.id),
							children: row.tool
						}),
						" ",
						/* @__PURE__ */ a("span", {
							class: "quiet",
							children: row.upstream
						})
					] })
				}),
				/* @__PURE__ */ a("td", {
					"data-label": "Submitted",
					title: moment(row.created_at),
					children: ago(row.created_at, now)
				}),
				/* @__PURE__ */ a("td", {
					"data-label": "Took",
					children: took(row, now)
				}),
				/* @__PURE__ */ a("td", {
					"data-label": "Attempt",
					class: row.attempt > 1 ? "again" : "",
					children: [
						row.attempt,
						" of ",
						row.attempts_allowed
					]
				}),
				/* @__PURE__ */ a("td", {
					"data-label": "Principal",
					children: row.principal
				}),
				/* @__PURE__ */ a("td", {
					"data-label": "Last error",
					children: row.error ? /* @__PURE__ */ a("code", {
						title: row.error.message,
						children: row.error.code
					}) : ""
				}),
				/* @__PURE__ */ a("td", {
					"data-label": "Id",
					children: /* @__PURE__ */ a("code", {
						title: row.id,
						children: ["…", row.id.slice(-8)]
					})
				})
			] }, row.id)) })
		]
	});
}
function took(row, now) {
	const endMs = row.ended_at ? Date.parse(row.ended_at) : now;
	const text = duration(Math.max(endMs - Date.parse(row.created_at), 0));
	return row.ended_at ? text : `${text} so far`;
}
// src/views/attention.tsx
var DAY_MS = 864e5;
function Attention() {
	const now = useNow();
	const unknown = useLoad("unknown", (signal) => get("/api/v1/executions?state=unknown&limit=200", signal));
	const waiting = useLoad("waiting", (signal) => get("/api/v1/executions?state=waiting&limit=100", signal));
	const failed = useLoad("failed", (signal) => {
		const since = (/* @__PURE__ */ new Date(Date.now() - DAY_MS)).toISOString();
		return get(`/api/v1/executions?state=failed&since=${encodeURIComponent(since)}&limit=100`, signal);
	});
	useLive("", true, () => {
		unknown.reload();
		waiting.reload();
		failed.reload();
	});
	const section = (id, title, sentence, of, none, query) => /* @__PURE__ */ a("section", {
		"aria-labelledby": id,
		children: [
			/* @__PURE__ */ a("h2", {
				id,
				children: title
			}),
			/* @__PURE__ */ a("p", {
				class: "quiet",
				children: sentence
			}),
			/* @__PURE__ */ a(Shown, {
				of,
				children: (page) => page.executions.length ? /* @__PURE__ */ a($, { children: [/* @__PURE__ */ a(ExecutionTable, {
					rows: page.executions,
					now
				}), page.next_before && /* @__PURE__ */ a("p", { children: /* @__PURE__ */ a("a", {
					href: href("executions", void 0, new URLSearchParams(query)),
					children: "All of them"
				}) })] }) : /* @__PURE__ */ a(Empty, { children: none })
			})
		]
	});
	return /* @__PURE__ */ a($, { children: [
		/* @__PURE__ */ a("h1", { children: "Needs attention" }),
		section("unknown", "Outcome unknown", "Started at most once, and its end was never learnt. It is not run again until somebody says what became of it.", unknown, "No call's outcome is unknown.", "state=unknown"),
		section("waiting", "Waits for input", "A tool asked something, and nobody has answered yet.", waiting, "No call waits for input.", "state=waiting"),
		section("failed", "Failed in the last day", "No result, and no attempt left.", failed, "No call failed.", "state=failed&within=24h")
	] });
}
// src/parts/copy.tsx
function Copy({ text, what }) {
	const [said, setSaid] = d("");
	const copy = async () => {
		const done = await navigator.clipboard?.writeText(text).then(() => true, () => false);
		setSaid(done ? "Copied" : "Select and copy it by hand");
		setTimeout(() => setSaid(""), 2e3);
	};
	return /* @__PURE__ */ a("button", {
		class: "copy",
		onClick: copy,
		title: `Copy ${what}`,
		children: [said || `Copy ${what}`, /* @__PURE__ */ a("span", {
			class: "hidden",
			role: "status",
			children: said
		})]
	});
}
// src/views/connect.tsx
function snippets(url) {
	const json = (value) => JSON.stringify(value, null, 2);
	return [
		[
			"Claude Code",
			"One command in a terminal.",
			`claude mcp add --transport http durable ${url}`
		],
		[
			"Claude Desktop",
			"In claude_desktop_config.json; it speaks stdio, so the program goes in between.",
			json({ mcpServers: { durable: {
				command: "durable-mcp",
				args: [
					"connect",
					"--url",
					url
				]
			} } })
		],
		[
			"Cursor",
			"In .cursor/mcp.json.",
			json({ mcpServers: { durable: { url } } })
		],
		[
			"VS Code",
			"In .vscode/mcp.json.",
			json({ servers: { durable: {
				type: "http",
				url
			} } })
		],
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
		[
			"The command line",
			"Calls a tool, and says what became of it.",
			`durable-mcp call TOOL --args '{}' --url ${url}`
		]
	];
}
function Connect() {
	const url = new URL("mcp", document.baseURI.replace(/[?#].*$/, "")).href;
	return /* @__PURE__ */ a($, { children: [
		/* @__PURE__ */ a("h1", { children: "Connect" }),
		/* @__PURE__ */ a("p", { children: [
			"MCP clients connect to ",
			/* @__PURE__ */ a("code", { children: url }),
			". With authentication they send ",
			/* @__PURE__ */ a("code", { children: "Authorization: Bearer …" }),
			" with a key of",
			" ",
			/* @__PURE__ */ a("code", { children: "durable-mcp token create" }),
			"."
		] }),
		snippets(url).map(([name, sentence, text]) => /* @__PURE__ */ a("section", {
			class: "snippet",
			children: [
				/* @__PURE__ */ a("h2", { children: name }),
				/* @__PURE__ */ a("p", {
					class: "quiet",
					children: sentence
				}),
				/* @__PURE__ */ a("pre", {
					tabIndex: 0,
					"aria-label": `For ${name}`,
					children: text
				}),
				/* @__PURE__ */ a(Copy, {
					text,
					what: "it"
				})
			]
		}, name))
	] });
}
// src/parts/orders.tsx
/** The orders that the state of an execution permits. */
function ordersFor(state) {
	if (state === "unknown") return ["resolve", "retry"];
	if (state === "failed" || state === "cancelled") return ["retry"];
	return state === "completed" ? [] : ["cancel"];
}
function Orders({ execution, onDone }) {
	const who = useSignal(caller);
	const [order, setOrder] = d();
	return /* @__PURE__ */ a("span", {
		class: "orders",
		children: [ordersFor(execution.state).filter((order) => may(who, order === "cancel" ? "cancel" : "operate")).map((order) => /* @__PURE__ */ a("button", {
			class: order === "cancel" ? "danger" : "",
			onClick: () => setOrder(order),
			children: order === "cancel" ? "Cancel…" : order === "retry" ? "Run again…" : "Resolve…"
		}, order)), order && /* @__PURE__ */ a(Ask, {
			order,
			execution,
			onClose: () => setOrder(void 0),
			onDone
		})]
	});
}
var TITLES = {
	cancel: "Cancel this call",
	retry: "Run this call again",
	resolve: "Say what became of it"
};
function Ask({ order, execution, onClose, onDone }) {
	const [reason, setReason] = d("");
	const [outcome, setOutcome] = d("completed");
	const act = async () => {
		const body = order === "resolve" ? {
			outcome,
			reason
		} : { reason: reason || null };
		onDone((await post(`/api/v1/executions/${execution.id}/${order}`, body)).execution);
	};
	const ready = order === "cancel" || reason.trim() !== "";
	return /* @__PURE__ */ a(Dialog, {
		title: TITLES[order],
		act: TITLES[order],
		danger: order === "cancel",
		ready,
		onAct: act,
		onClose,
		children: [
			/* @__PURE__ */ a("p", { children: [
				/* @__PURE__ */ a("code", { children: execution.tool }),
				" of ",
				/* @__PURE__ */ a("code", { children: execution.upstream }),
				", called by ",
				execution.principal
			] }),
			order === "retry" && execution.state === "unknown" && /* @__PURE__ */ a("p", {
				class: "warning",
				children: "It may have had its effect already. Running it again may repeat that effect, unless the tool honours its key."
			}),
			order === "cancel" && /* @__PURE__ */ a("p", { children: "Cancelling is final. What runs is told to stop; what it did until then stays done." }),
			order === "resolve" && /* @__PURE__ */ a("fieldset", { children: [/* @__PURE__ */ a("legend", { children: "What you found out" }), ["completed", "failed"].map((one) => /* @__PURE__ */ a("label", { children: [
				/* @__PURE__ */ a("input", {
					type: "radio",
					name: "outcome",
					checked: outcome === one,
					onChange: () => setOutcome(one)
				}),
				" ",
				one === "completed" ? "It took effect: completed" : "It did not take effect: failed"
			] }, one))] }),
			/* @__PURE__ */ a("label", { children: [
				"Reason",
				order === "cancel" && " (optional)",
				/* @__PURE__ */ a("input", {
					value: reason,
					maxLength: 1e3,
					onInput: (e) => setReason(e.currentTarget.value)
				})
			] }),
			/* @__PURE__ */ a("p", {
				class: "quiet",
				children: "The reason is kept in the log with your name."
			})
		]
	});
}
// src/parts/payload.tsx
/** A longer text is shown in part until somebody asks for all of it. */
var SHOWN_MAX = 2e4;
function Payload({ name, text }) {
	const [exact, setExact] = d(false);
	const [all, setAll] = d(false);
	const shown = exact ? text : laidOut(text);
	const cut = !all && shown.length > SHOWN_MAX;
	return /* @__PURE__ */ a("figure", {
		class: "payload",
		children: [
			/* @__PURE__ */ a("figcaption", { children: [
				/* @__PURE__ */ a("strong", { children: name }),
				" ",
				/* @__PURE__ */ a("span", {
					class: "quiet",
					children: bytes(new Blob([text]).size)
				}),
				/* @__PURE__ */ a("button", {
					"aria-pressed": exact,
					onClick: () => setExact(!exact),
					children: exact ? "Lay out" : "Exact text"
				}),
				/* @__PURE__ */ a(Copy, {
					what: "the exact text",
					text
				})
			] }),
			/* @__PURE__ */ a("pre", {
				tabIndex: 0,
				"aria-label": name,
				children: cut ? shown.slice(0, SHOWN_MAX) : shown
			}),
			cut && /* @__PURE__ */ a("button", {
				onClick: () => setAll(true),
				children: "Show all of it"
			})
		]
	});
}
/** Line breaks and indentation between the tokens; no token is changed, so numbers keep their spelling. */
function laidOut(json) {
	let out = "";
	let depth = 0;
	const line = () => `\n${"  ".repeat(depth)}`;
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
// src/lives.ts
/** An attempt that ended without the tool's word: its worker died, or went silent. */
var LOST = /* @__PURE__ */ new Set([
	"lease_expired",
	"process_died",
	"child_died",
	"connection_lost",
	"worker_gone"
]);
function lifeOf(events) {
	const life = {
		holds: [],
		gaps: [],
		startMs: 0
	};
	let hold;
	let gap;
	const close = (atMs, end, why) => {
		if (!hold) return;
		Object.assign(hold, {
			toMs: atMs,
			end
		}, why !== void 0 && { why });
		hold = void 0;
	};
	const wait = (fromMs, why) => {
		gap ??= {
			fromMs,
			why
		};
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
					if (atMs > gap.fromMs) life.gaps.push({
						...gap,
						toMs: atMs,
						by: worker
					});
					gap = void 0;
				}
				close(atMs, "lost", "another worker took over");
				hold = {
					attempt,
					worker,
					token: fencing_token,
					fromMs: atMs,
					end: "held"
				};
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
				if (gap) life.gaps.push({
					...gap,
					toMs: atMs
				});
				gap = void 0;
				wait(atMs, event.type === "lost" ? "decision" : lost ? "recovery" : "back-off");
				break;
			}
			case "completed":
			case "failed":
			case "cancelled":
				close(atMs, event.type === "failed" && error && LOST.has(error.code) ? "lost" : event.type, error?.message);
				if (gap && atMs > gap.fromMs) life.gaps.push({
					...gap,
					toMs: atMs
				});
				gap = void 0;
				life.endMs = atMs;
		}
	}
	if (gap) life.gaps.push(gap);
	return life;
}
// src/parts/timeline.tsx
var WIDTH = 1e3;
var LANE = 30;
var ENDS = {
	held: "running",
	completed: "completed",
	failed: "failed",
	lost: "lost",
	released: "given back unstarted",
	parked: "gave its lease up, waits for input",
	cancelled: "cancelled"
};
var WAITS = {
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
	const x = (ms) => (ms - life.startMs) / spanMs * WIDTH;
	const height = Math.max(life.holds.length, 1) * LANE + 8;
	const sentence = (hold) => `Attempt ${hold.attempt} at ${hold.worker}: ${ENDS[hold.end]} after ${duration((hold.toMs ?? now) - hold.fromMs)}`;
	const shownGaps = life.gaps.filter((gap) => (gap.toMs ?? endMs) - gap.fromMs > spanMs / 400);
	return /* @__PURE__ */ a("figure", {
		class: "timeline",
		children: [
			/* @__PURE__ */ a("svg", {
				viewBox: `0 0 ${WIDTH} ${height}`,
				preserveAspectRatio: "none",
				role: "img",
				"aria-label": "The leases of this call over time",
				children: [shownGaps.map((gap) => /* @__PURE__ */ a("rect", {
					class: `gap gap-${gap.why}`,
					x: x(gap.fromMs),
					width: Math.max(x(gap.toMs ?? endMs) - x(gap.fromMs), 1),
					y: 0,
					height,
					children: /* @__PURE__ */ a("title", { children: `${WAITS[gap.why]} for ${duration((gap.toMs ?? now) - gap.fromMs)}` })
				}, `gap ${gap.fromMs}`)), life.holds.map((hold, lane) => /* @__PURE__ */ a("rect", {
					class: `lease lease-${hold.end}`,
					x: x(hold.fromMs),
					width: Math.max(x(hold.toMs ?? endMs) - x(hold.fromMs), 3),
					y: lane * LANE + 6,
					height: 22,
					rx: 2,
					children: /* @__PURE__ */ a("title", { children: sentence(hold) })
				}, hold.token))]
			}),
			/* @__PURE__ */ a("div", {
				class: "timeline-ends",
				children: [
					/* @__PURE__ */ a("span", { children: clock(new Date(life.startMs).toISOString()) }),
					/* @__PURE__ */ a("span", { children: duration(spanMs) }),
					/* @__PURE__ */ a("span", { children: life.endMs ? clock(new Date(life.endMs).toISOString()) : "now" })
				]
			}),
			/* @__PURE__ */ a("ol", {
				class: "lanes",
				children: [life.holds.map((hold) => {
					const before = life.gaps.find((gap) => gap.toMs === hold.fromMs && gap.toMs > gap.fromMs);
					return /* @__PURE__ */ a("li", { children: [
						before && /* @__PURE__ */ a("span", {
							class: "lane-gap",
							children: [
								WAITS[before.why],
								" for ",
								duration(before.toMs - before.fromMs),
								before.why === "recovery" && `, then ${hold.worker} took over`
							]
						}),
						/* @__PURE__ */ a("span", {
							class: `swatch lease-${hold.end}`,
							"aria-hidden": "true"
						}),
						" ",
						sentence(hold),
						/* @__PURE__ */ a("span", {
							class: "quiet",
							children: [" · fencing token ", hold.token]
						}),
						hold.why && hold.end !== "completed" && /* @__PURE__ */ a("span", {
							class: "lane-why",
							children: hold.why
						})
					] }, hold.token);
				}), life.gaps.filter((gap) => gap.toMs === void 0).map((gap) => /* @__PURE__ */ a("li", {
					class: "lane-gap",
					children: [
						WAITS[gap.why],
						", for ",
						duration(Math.max(now - gap.fromMs, 0)),
						" now"
					]
				}, "open"))]
			})
		]
	});
}
// src/views/execution.tsx
async function whole(id, signal) {
	const at = `/api/v1/executions/${encodeURIComponent(id)}`;
	const [row, why, events] = await Promise.all([
		get(at, signal),
		get(`${at}/why`, signal),
		log(at, signal)
	]);
	return {
		row,
		why,
		events
	};
}
async function log(at, signal) {
	const events = [];
	for (let after = 0; after !== null;) {
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
	return /* @__PURE__ */ a($, { children: [/* @__PURE__ */ a("p", {
		class: "back",
		children: /* @__PURE__ */ a("a", {
			href: href("executions"),
			children: "← Executions"
		})
	}), /* @__PURE__ */ a(Shown, {
		of: loaded,
		children: ({ row, events, why }) => /* @__PURE__ */ a($, { children: [
			/* @__PURE__ */ a("header", {
				class: "view-head",
				children: [
					/* @__PURE__ */ a("h1", { children: [
						row.tool,
						" ",
						/* @__PURE__ */ a("span", {
							class: "quiet",
							children: ["of ", row.upstream]
						})
					] }),
					/* @__PURE__ */ a(State, {
						state: row.state,
						isError: row.is_error ?? null
					}),
					/* @__PURE__ */ a(Orders, {
						execution: row,
						onDone: (of) => {
							if (of.id !== row.id) location.hash = href("executions", of.id);
							loaded.reload();
						}
					})
				]
			}),
			/* @__PURE__ */ a(Sentences, { why }),
			/* @__PURE__ */ a(Life, { events }),
			/* @__PURE__ */ a(Facts, { row }),
			/* @__PURE__ */ a(Log, { events }),
			/* @__PURE__ */ a(Payloads, { row })
		] })
	})] });
}
function Sentences({ why }) {
	return /* @__PURE__ */ a("section", {
		"aria-labelledby": "why",
		children: [/* @__PURE__ */ a("h2", {
			id: "why",
			children: "What happened"
		}), /* @__PURE__ */ a("ul", {
			class: "sentences",
			children: [
				why.asked,
				why.ran,
				why.lost,
				why.decided,
				why.next
			].map((sentence, index) => /* @__PURE__ */ a("li", { children: sentence }, index))
		})]
	});
}
function Life({ events }) {
	const now = useNow();
	return /* @__PURE__ */ a("section", {
		"aria-labelledby": "life",
		children: [/* @__PURE__ */ a("h2", {
			id: "life",
			children: "Attempts and workers"
		}), /* @__PURE__ */ a(Timeline, {
			events,
			now
		})]
	});
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
	return /* @__PURE__ */ a("section", {
		"aria-labelledby": "facts",
		children: [/* @__PURE__ */ a("h2", {
			id: "facts",
			children: "Facts"
		}), /* @__PURE__ */ a("dl", {
			class: "facts",
			children: [facts.map(([name, value]) => value ? /* @__PURE__ */ a("div", { children: [/* @__PURE__ */ a("dt", { children: name }), /* @__PURE__ */ a("dd", { children: value })] }, name) : null), row.retry_of && /* @__PURE__ */ a("div", { children: [/* @__PURE__ */ a("dt", { children: "Repeats" }), /* @__PURE__ */ a("dd", { children: /* @__PURE__ */ a("a", {
				href: href("executions", row.retry_of),
				children: row.retry_of
			}) })] })]
		})]
	});
}
function Log({ events }) {
	const firstMs = events[0] ? Date.parse(events[0].at) : 0;
	return /* @__PURE__ */ a("section", {
		"aria-labelledby": "log",
		children: [/* @__PURE__ */ a("h2", {
			id: "log",
			children: "Log"
		}), /* @__PURE__ */ a("table", {
			class: "rows log",
			children: [/* @__PURE__ */ a("thead", { children: /* @__PURE__ */ a("tr", { children: [
				/* @__PURE__ */ a("th", { children: "No." }),
				/* @__PURE__ */ a("th", { children: "At" }),
				/* @__PURE__ */ a("th", { children: "After" }),
				/* @__PURE__ */ a("th", { children: "Event" }),
				/* @__PURE__ */ a("th", { children: "Members" })
			] }) }), /* @__PURE__ */ a("tbody", { children: events.map(({ seq, type, at, ...members }) => /* @__PURE__ */ a("tr", { children: [
				/* @__PURE__ */ a("td", {
					"data-label": "No.",
					children: seq
				}),
				/* @__PURE__ */ a("td", {
					"data-label": "At",
					title: moment(at),
					children: clock(at)
				}),
				/* @__PURE__ */ a("td", {
					"data-label": "After",
					children: duration(Date.parse(at) - firstMs)
				}),
				/* @__PURE__ */ a("td", {
					"data-label": "Event",
					children: /* @__PURE__ */ a("code", { children: type })
				}),
				/* @__PURE__ */ a("td", {
					"data-label": "Members",
					children: /* @__PURE__ */ a("code", {
						class: "members",
						children: Object.entries(members).map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`).join("   ")
					})
				})
			] }, seq)) })]
		})]
	});
}
/** The exact texts. They are read when somebody wants to see them: reading is a right of its own. */
function Payloads({ row }) {
	const who = useSignal(caller);
	const [wanted, setWanted] = d(false);
	A(() => setWanted(false), [row.id]);
	return /* @__PURE__ */ a("section", {
		"aria-labelledby": "payloads",
		children: [/* @__PURE__ */ a("h2", {
			id: "payloads",
			children: "Arguments and result"
		}), !may(who, "payloads") ? /* @__PURE__ */ a(Empty, { children: "Your credential does not permit to read payloads." }) : wanted ? /* @__PURE__ */ a(Texts, { row }) : /* @__PURE__ */ a("button", {
			onClick: () => setWanted(true),
			children: "Show them"
		})]
	});
}
function Texts({ row }) {
	const loaded = useLoad(`${row.id} ${row.updated_at}`, async (signal) => {
		const line = await getText(`/api/v1/executions/export?id_prefix=${row.id}`, signal);
		const ending = await getText(`/api/v1/executions/${row.id}/result`, signal);
		return {
			args: member(line, "arguments"),
			ending: JSON.parse(ending),
			text: member(ending, "result") ?? member(ending, "rpc_error")
		};
	});
	if (loaded.problem) return /* @__PURE__ */ a(Failure, {
		problem: loaded.problem,
		reload: loaded.reload
	});
	if (!loaded.data) return /* @__PURE__ */ a(Loading, {});
	const { args, ending, text } = loaded.data;
	return /* @__PURE__ */ a($, { children: [
		args === void 0 ? /* @__PURE__ */ a(Empty, { children: "The arguments were deleted by retention." }) : /* @__PURE__ */ a(Payload, {
			name: "Arguments",
			text: args
		}),
		args !== void 0 && /* @__PURE__ */ a(Copy, {
			what: "as a command",
			text: command(row, args)
		}),
		text !== void 0 ? /* @__PURE__ */ a(Payload, {
			name: ending.rpc_error ? "Error of the server" : "Result",
			text
		}) : /* @__PURE__ */ a(Empty, { children: ending.deleted ? "The result was deleted by retention." : "There is no result." })
	] });
}
/** The exact text of a member of an object: parsing would change its numbers. */
function member(json, name) {
	const wanted = JSON.stringify(name);
	let depth = 0;
	for (let at = 0; at < json.length; at++) {
		const letter = json[at];
		if (letter === "{" || letter === "[") depth++;
		else if (letter === "}" || letter === "]") depth--;
		else if (letter === "\"") {
			const end = endOfString(json, at);
			if (depth === 1 && /^\s*:/.test(json.slice(end, end + 8)) && json.slice(at, end) === wanted) {
				const from = json.indexOf(":", end) + 1;
				const text = json.slice(from, endOfValue(json, from)).trim();
				return text === "null" ? void 0 : text;
			}
			at = end - 1;
		}
	}
}
function endOfString(json, from) {
	let at = from + 1;
	while (at < json.length && json[at] !== "\"") at += json[at] === "\\" ? 2 : 1;
	return at + 1;
}
function endOfValue(json, from) {
	let depth = 0;
	for (let at = from; at < json.length; at++) {
		const letter = json[at];
		if (letter === "\"") at = endOfString(json, at) - 1;
		else if (letter === "{" || letter === "[") depth++;
		else if ((letter === "}" || letter === "]") && depth-- === 0) return at;
		else if (letter === "," && depth === 0) return at;
	}
	return json.length;
}
/** The call as the command line makes it; the quotes are a POSIX shell's. */
function command(row, args) {
	return `durable-mcp call ${quoted(row.tool)} --args ${quoted(args)} --url ${quoted(new URL("mcp", document.baseURI).href.replace(/#.*$/, ""))}`;
}
function quoted(text) {
	return /^[\w./:-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
// src/parts/bulk.tsx
var NAMES = {
	cancel: "Cancel",
	retry: "Run again",
	resolve: "Resolve"
};
function BulkOrders({ filter, selected, act, onDone }) {
	const [pending, setPending] = d();
	const [reason, setReason] = d("");
	const [outcome, setOutcome] = d("failed");
	const [said, setSaid] = d("");
	const ask = async (action) => {
		setSaid("");
		if (selected.size) {
			setPending({
				action,
				ids: [...selected],
				found: selected.size
			});
			return;
		}
		try {
			const preview = await act({
				action,
				filter,
				preview: true
			});
			if (preview.more) setSaid(`More than ${preview.matching.toLocaleString()} fit: narrow the filter first.`);
			else if (!preview.matching) setSaid("The filter finds nothing with which that can be done.");
			else setPending({
				action,
				found: preview.matching
			});
		} catch (error) {
			setSaid(error instanceof Problem ? `${error.message} ${error.next}` : String(error));
		}
	};
	const order = async () => {
		if (!pending) return;
		const members = {
			reason,
			...pending.action === "resolve" && { outcome }
		};
		let done = 0;
		let refused = 0;
		if (pending.ids) for (const id of pending.ids) await post(`/api/v1/executions/${id}/${pending.action}`, members).then(() => done++, (error) => {
			if (!(error instanceof Problem) || error.status !== 409) throw error;
			refused++;
		});
		else {
			const answer = await act({
				action: pending.action,
				filter,
				expected: pending.found,
				preview: false,
				...members
			});
			for (const one of answer.outcomes ?? []) one.ok ? done++ : refused++;
		}
		setSaid(`Done with ${count(done, "call")}${refused ? `; ${count(refused, "call")} did not permit it` : ""}.`);
		setReason("");
		onDone();
	};
	return /* @__PURE__ */ a("div", {
		class: "bulk",
		children: [
			/* @__PURE__ */ a("span", { children: selected.size ? `${count(selected.size, "row")} selected:` : "All that fit the filters:" }),
			Object.keys(NAMES).map((action) => /* @__PURE__ */ a("button", {
				onClick: () => ask(action),
				children: [NAMES[action], "…"]
			}, action)),
			/* @__PURE__ */ a("span", {
				role: "status",
				children: said
			}),
			pending && /* @__PURE__ */ a(Dialog, {
				title: `${NAMES[pending.action]}: ${count(pending.found, "call")}`,
				act: `${NAMES[pending.action]} ${pending.found.toLocaleString()}`,
				danger: pending.action !== "resolve",
				ready: reason.trim() !== "",
				onAct: order,
				onClose: () => setPending(void 0),
				children: [
					pending.action === "resolve" && /* @__PURE__ */ a("label", { children: ["As", /* @__PURE__ */ a("select", {
						value: outcome,
						onChange: (event) => setOutcome(event.currentTarget.value),
						children: [/* @__PURE__ */ a("option", {
							value: "failed",
							children: "failed: it did not take effect"
						}), /* @__PURE__ */ a("option", {
							value: "completed",
							children: "completed: it took effect"
						})]
					})] }),
					/* @__PURE__ */ a("label", { children: ["Reason", /* @__PURE__ */ a("input", {
						value: reason,
						maxLength: 1e3,
						onInput: (event) => setReason(event.currentTarget.value)
					})] }),
					/* @__PURE__ */ a("p", {
						class: "quiet",
						children: "Each order is kept in the log of its call with your name and the reason."
					})
				]
			})
		]
	});
}
// src/views/executions.tsx
var PAGE = 50;
var SPANS = [
	["", "any time"],
	["15m", "15 minutes"],
	["1h", "1 hour"],
	["24h", "24 hours"],
	["7d", "7 days"]
];
var UNITS = {
	m: 6e4,
	h: 36e5,
	d: 864e5
};
var TEXTS = [
	["tool", "Tool"],
	["upstream", "Server"],
	["principal", "Principal"],
	["key", "Key"],
	["error_code", "Error code"],
	["id_prefix", "Id begins with"]
];
/** The API's parameters for the filters in the address. `within` is counted back from the present. */
function parameters(query) {
	const wanted = new URLSearchParams();
	for (const name of [
		"state",
		"recovered",
		"attempts_over",
		...TEXTS.map(([name]) => name)
	]) {
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
/** The same as the body of an order by filter. */
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
	return /* @__PURE__ */ a($, { children: [
		/* @__PURE__ */ a("header", {
			class: "view-head",
			children: [
				/* @__PURE__ */ a("h1", { children: "Executions" }),
				/* @__PURE__ */ a("button", {
					"aria-pressed": live,
					onClick: () => setLive(!live),
					children: live ? "Pause" : "Go on"
				}),
				/* @__PURE__ */ a("span", {
					class: `tail ${tail.alive ? "tail-on" : ""}`,
					role: "status",
					children: !live ? "paused" : tail.alive ? "live" : tail.problem ? `not live: ${tail.problem.message}` : "connecting…"
				})
			]
		}),
		/* @__PURE__ */ a(Filters, { query }),
		may(who, "operate") && /* @__PURE__ */ a(BulkOrders, {
			filter: filterOf(wanted),
			selected,
			act,
			onDone: () => setSelected(/* @__PURE__ */ new Set())
		}),
		/* @__PURE__ */ a(Shown, {
			of: page,
			children: (data) => {
				const rows = merged(data.executions, older);
				if (!rows.length) return /* @__PURE__ */ a(Empty, { children: key ? "No call fits these filters." : "No call yet. The first one shows up here by itself." });
				const hasMore = next === void 0 ? data.next_before : next;
				return /* @__PURE__ */ a($, { children: [/* @__PURE__ */ a(ExecutionTable, {
					rows,
					now,
					...may(who, "operate") && {
						selected,
						onSelect: setSelected
					}
				}), hasMore && /* @__PURE__ */ a("p", {
					class: "more",
					children: /* @__PURE__ */ a("button", {
						onClick: more,
						children: "Show older ones"
					})
				})] });
			}
		})
	] });
}
function withLimit(wanted) {
	const asked = new URLSearchParams(wanted);
	asked.set("limit", String(PAGE));
	return asked;
}
/** A fresh first page over the older ones, each execution once. */
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
	return /* @__PURE__ */ a("form", {
		class: "filters",
		onSubmit: (event) => event.preventDefault(),
		"aria-label": "Filters",
		children: [/* @__PURE__ */ a("fieldset", {
			class: "chips",
			children: [/* @__PURE__ */ a("legend", {
				class: "hidden",
				children: "State"
			}), STATES.map((state) => /* @__PURE__ */ a("label", {
				class: `chip state-${state}`,
				children: [
					/* @__PURE__ */ a("input", {
						type: "checkbox",
						checked: states.has(state),
						onChange: () => toggle(state)
					}),
					" ",
					state
				]
			}, state))]
		}), /* @__PURE__ */ a("details", {
			open: wide.matches || fieldsGiven,
			children: [/* @__PURE__ */ a("summary", { children: "More filters" }), /* @__PURE__ */ a("div", {
				class: "fields",
				children: [
					TEXTS.map(([name, label]) => /* @__PURE__ */ a("label", { children: [label, /* @__PURE__ */ a(Typed, {
						value: query.get(name) ?? "",
						onValue: (value) => set(name, value)
					})] }, name)),
					/* @__PURE__ */ a("label", { children: ["Submitted within", /* @__PURE__ */ a("select", {
						value: query.get("within") ?? "",
						onChange: (event) => set("within", event.currentTarget.value),
						children: SPANS.map(([value, label]) => /* @__PURE__ */ a("option", {
							value,
							children: label
						}, value))
					})] }),
					/* @__PURE__ */ a("label", {
						class: "check",
						children: [
							/* @__PURE__ */ a("input", {
								type: "checkbox",
								checked: query.get("attempts_over") === "1",
								onChange: (event) => set("attempts_over", event.currentTarget.checked ? "1" : "")
							}),
							" ",
							"more than one attempt"
						]
					}),
					/* @__PURE__ */ a("label", {
						class: "check",
						children: [
							/* @__PURE__ */ a("input", {
								type: "checkbox",
								checked: query.get("recovered") === "true",
								onChange: (event) => set("recovered", event.currentTarget.checked ? "true" : "")
							}),
							" ",
							"recovered"
						]
					}),
					given > 0 && /* @__PURE__ */ a("button", {
						type: "button",
						onClick: () => setQuery(new URLSearchParams()),
						children: "Clear filters"
					})
				]
			})]
		})]
	});
}
/** On a phone the fields would push the calls out of sight. */
var wide = matchMedia("(min-width: 46rem)");
var TYPING_PAUSE_MS = 300;
/** A text that is taken when somebody stops typing. */
function Typed({ value, onValue }) {
	const [text, setText] = d(value);
	A(() => setText(value), [value]);
	A(() => {
		if (text === value) return;
		const timer = setTimeout(() => onValue(text.trim()), TYPING_PAUSE_MS);
		return () => clearTimeout(timer);
	}, [text]);
	return /* @__PURE__ */ a("input", {
		type: "search",
		value: text,
		maxLength: 300,
		onInput: (event) => setText(event.currentTarget.value)
	});
}
// src/views/sessions.tsx
function Sessions() {
	const now = useNow();
	const who = useSignal(caller);
	const [closing, setClosing] = d();
	const [pages, setPages] = d([]);
	const after = pages.at(-1);
	const loaded = useLoad(after ?? "", (signal) => get(`/api/v1/sessions?limit=100${after ? `&after=${encodeURIComponent(after)}` : ""}`, signal), 5e3);
	return /* @__PURE__ */ a($, { children: [
		/* @__PURE__ */ a("h1", { children: "Sessions" }),
		/* @__PURE__ */ a("p", {
			class: "quiet",
			children: "Of clients that speak a revision up to 2025-11-25. Newer ones have none."
		}),
		/* @__PURE__ */ a(Shown, {
			of: loaded,
			children: ({ sessions, next_after }) => /* @__PURE__ */ a($, { children: [sessions.length ? /* @__PURE__ */ a("table", {
				class: "rows",
				children: [
					/* @__PURE__ */ a("caption", {
						class: "hidden",
						children: "Sessions"
					}),
					/* @__PURE__ */ a("thead", { children: /* @__PURE__ */ a("tr", { children: [
						/* @__PURE__ */ a("th", { children: "Client" }),
						/* @__PURE__ */ a("th", { children: "State" }),
						/* @__PURE__ */ a("th", { children: "Principal" }),
						/* @__PURE__ */ a("th", { children: "Revision" }),
						/* @__PURE__ */ a("th", { children: "Opened" }),
						/* @__PURE__ */ a("th", { children: "Last used" }),
						/* @__PURE__ */ a("th", { children: "Log level" }),
						/* @__PURE__ */ a("th", { children: "Subscriptions" }),
						/* @__PURE__ */ a("th", { children: "Id" }),
						/* @__PURE__ */ a("th", { children: /* @__PURE__ */ a("span", {
							class: "hidden",
							children: "Orders"
						}) })
					] }) }),
					/* @__PURE__ */ a("tbody", { children: sessions.map((session) => /* @__PURE__ */ a("tr", { children: [
						/* @__PURE__ */ a("td", {
							"data-label": "Client",
							children: session.client_name ?? "?"
						}),
						/* @__PURE__ */ a("td", {
							"data-label": "State",
							children: session.state
						}),
						/* @__PURE__ */ a("td", {
							"data-label": "Principal",
							children: session.principal
						}),
						/* @__PURE__ */ a("td", {
							"data-label": "Revision",
							children: session.revision
						}),
						/* @__PURE__ */ a("td", {
							"data-label": "Opened",
							title: moment(session.created_at),
							children: ago(session.created_at, now)
						}),
						/* @__PURE__ */ a("td", {
							"data-label": "Last used",
							title: moment(session.last_seen_at),
							children: ago(session.last_seen_at, now)
						}),
						/* @__PURE__ */ a("td", {
							"data-label": "Log level",
							children: session.log_level ?? ""
						}),
						/* @__PURE__ */ a("td", {
							"data-label": "Subscriptions",
							children: session.subscriptions || ""
						}),
						/* @__PURE__ */ a("td", {
							"data-label": "Id",
							title: session.id,
							children: /* @__PURE__ */ a("code", { children: [session.id.slice(0, 8), "…"] })
						}),
						/* @__PURE__ */ a("td", { children: may(who, "operate") && session.state === "open" && /* @__PURE__ */ a("button", {
							onClick: () => setClosing(session),
							children: "Close…"
						}) })
					] }, session.id)) })
				]
			}) : /* @__PURE__ */ a(Empty, { children: "No session is open." }), /* @__PURE__ */ a("p", {
				class: "more",
				children: [pages.length > 0 && /* @__PURE__ */ a("button", {
					onClick: () => setPages(pages.slice(0, -1)),
					children: "Back"
				}), next_after && /* @__PURE__ */ a("button", {
					onClick: () => setPages([...pages, next_after]),
					children: "More"
				})]
			})] })
		}),
		closing && /* @__PURE__ */ a(Dialog, {
			title: "Close this session",
			act: "Close it",
			danger: true,
			onAct: async () => {
				await post(`/api/v1/sessions/${closing.id}/close`, {});
				loaded.reload();
			},
			onClose: () => setClosing(void 0),
			children: /* @__PURE__ */ a("p", { children: [
				closing.client_name ?? "Its client",
				" of ",
				closing.principal,
				" has to initialize anew. Calls that run go on."
			] })
		})
	] });
}
// src/views/tools.tsx
function Tools() {
	const loaded = useLoad("tools", (signal) => get("/api/v1/tools", signal), 1e4);
	return /* @__PURE__ */ a($, { children: [/* @__PURE__ */ a("h1", { children: "Tools" }), /* @__PURE__ */ a(Shown, {
		of: loaded,
		children: ({ tools, upstreams }) => /* @__PURE__ */ a($, { children: [/* @__PURE__ */ a("ul", {
			class: "upstreams",
			children: upstreams.map((upstream) => /* @__PURE__ */ a("li", { children: [
				/* @__PURE__ */ a("strong", { children: upstream.name }),
				" ",
				/* @__PURE__ */ a("span", {
					class: `upstream-${upstream.state}`,
					children: upstream.state
				}),
				/* @__PURE__ */ a("span", {
					class: "quiet",
					children: [", ", count(upstream.tools, "tool")]
				}),
				upstream.problem && /* @__PURE__ */ a("p", {
					class: "warning",
					children: upstream.problem
				})
			] }, upstream.name))
		}), tools.length ? /* @__PURE__ */ a("table", {
			class: "rows",
			children: [
				/* @__PURE__ */ a("caption", {
					class: "hidden",
					children: "Tools"
				}),
				/* @__PURE__ */ a("thead", { children: /* @__PURE__ */ a("tr", { children: [
					/* @__PURE__ */ a("th", { children: "Tool" }),
					/* @__PURE__ */ a("th", { children: "What it does" }),
					/* @__PURE__ */ a("th", { children: "Delivery" }),
					/* @__PURE__ */ a("th", { children: "Attempts" }),
					/* @__PURE__ */ a("th", { children: "Waits for" })
				] }) }),
				/* @__PURE__ */ a("tbody", { children: tools.map((tool) => /* @__PURE__ */ a("tr", { children: [
					/* @__PURE__ */ a("td", {
						"data-label": "Tool",
						children: /* @__PURE__ */ a("a", {
							href: href("tools", tool.name),
							children: tool.name
						})
					}),
					/* @__PURE__ */ a("td", {
						"data-label": "What it does",
						class: "prose",
						children: tool.description ?? tool.title ?? ""
					}),
					/* @__PURE__ */ a("td", {
						"data-label": "Delivery",
						children: setting(tool, "delivery")
					}),
					/* @__PURE__ */ a("td", {
						"data-label": "Attempts",
						children: setting(tool, "retry.max_attempts")
					}),
					/* @__PURE__ */ a("td", {
						"data-label": "Waits for",
						children: setting(tool, "wait")
					})
				] }, tool.name)) })
			]
		}) : /* @__PURE__ */ a(Empty, { children: "No server has offered a tool yet." })] })
	})] });
}
function OneTool({ name }) {
	const loaded = useLoad(name, (signal) => get(`/api/v1/tools/${encodeURIComponent(name)}`, signal));
	return /* @__PURE__ */ a($, { children: [/* @__PURE__ */ a("p", {
		class: "back",
		children: /* @__PURE__ */ a("a", {
			href: href("tools"),
			children: "← Tools"
		})
	}), /* @__PURE__ */ a(Shown, {
		of: loaded,
		children: (tool) => /* @__PURE__ */ a($, { children: [
			/* @__PURE__ */ a("h1", { children: tool.name }),
			/* @__PURE__ */ a("p", {
				class: "prose",
				children: tool.description
			}),
			/* @__PURE__ */ a("p", { children: /* @__PURE__ */ a("a", {
				href: href("executions", void 0, new URLSearchParams({
					tool: tool.tool,
					upstream: tool.upstream
				})),
				children: "Its executions"
			}) }),
			/* @__PURE__ */ a("section", {
				"aria-labelledby": "policy",
				children: [/* @__PURE__ */ a("h2", {
					id: "policy",
					children: "Settings in force"
				}), /* @__PURE__ */ a("table", {
					class: "rows",
					children: [/* @__PURE__ */ a("thead", { children: /* @__PURE__ */ a("tr", { children: [
						/* @__PURE__ */ a("th", { children: "Setting" }),
						/* @__PURE__ */ a("th", { children: "Value" }),
						/* @__PURE__ */ a("th", { children: "Said by" })
					] }) }), /* @__PURE__ */ a("tbody", { children: Object.keys(tool.policy).map((key) => /* @__PURE__ */ a("tr", { children: [
						/* @__PURE__ */ a("td", {
							"data-label": "Setting",
							children: /* @__PURE__ */ a("code", { children: key })
						}),
						/* @__PURE__ */ a("td", {
							"data-label": "Value",
							children: setting(tool, key)
						}),
						/* @__PURE__ */ a("td", {
							"data-label": "Said by",
							children: tool.policy[key].source
						})
					] }, key)) })]
				})]
			}),
			tool.definition && /* @__PURE__ */ a(Payload, {
				name: "Its definition",
				text: JSON.stringify(tool.definition)
			})
		] })
	})] });
}
function setting(tool, key) {
	const setting = tool.policy[key];
	if (!setting) return "";
	if (typeof setting.value_ms === "number") return duration(setting.value_ms);
	const value = setting.value;
	if (value === null || value === void 0) return "off";
	if (Array.isArray(value)) return value.length ? value.join(", ") : "none";
	return typeof value === "object" ? JSON.stringify(value) : String(value);
}
// src/views/workers.tsx
var EVERY_MS = 2e3;
function Workers() {
	const now = useNow();
	const who = useSignal(caller);
	const [draining, setDraining] = d();
	const loaded = useLoad("workers", (signal) => get("/api/v1/workers", signal), EVERY_MS);
	return /* @__PURE__ */ a($, { children: [
		/* @__PURE__ */ a("h1", { children: "Workers" }),
		/* @__PURE__ */ a(Shown, {
			of: loaded,
			children: ({ workers }) => workers.length ? /* @__PURE__ */ a("table", {
				class: "rows",
				children: [
					/* @__PURE__ */ a("caption", {
						class: "hidden",
						children: "Workers"
					}),
					/* @__PURE__ */ a("thead", { children: /* @__PURE__ */ a("tr", { children: [
						/* @__PURE__ */ a("th", { children: "Name" }),
						/* @__PURE__ */ a("th", { children: "State" }),
						/* @__PURE__ */ a("th", { children: "Kind" }),
						/* @__PURE__ */ a("th", { children: "Calls" }),
						/* @__PURE__ */ a("th", { children: "Tools" }),
						/* @__PURE__ */ a("th", { children: "Registered" }),
						/* @__PURE__ */ a("th", { children: "Heard of" }),
						/* @__PURE__ */ a("th", { children: "Made with" }),
						/* @__PURE__ */ a("th", { children: /* @__PURE__ */ a("span", {
							class: "hidden",
							children: "Orders"
						}) })
					] }) }),
					/* @__PURE__ */ a("tbody", { children: inOrder(workers).map((worker) => /* @__PURE__ */ a("tr", {
						class: worker.state === "gone" ? "past" : "",
						children: [
							/* @__PURE__ */ a("td", {
								"data-label": "Name",
								title: worker.id,
								children: worker.name
							}),
							/* @__PURE__ */ a("td", {
								"data-label": "State",
								children: worker.state
							}),
							/* @__PURE__ */ a("td", {
								"data-label": "Kind",
								children: worker.kind
							}),
							/* @__PURE__ */ a("td", {
								"data-label": "Calls",
								children: [
									/* @__PURE__ */ a("meter", {
										min: 0,
										max: worker.slots,
										value: worker.leased,
										"aria-label": "Slots in use"
									}),
									" ",
									worker.leased,
									" of ",
									worker.slots
								]
							}),
							/* @__PURE__ */ a("td", {
								"data-label": "Tools",
								children: worker.tools.length ? worker.tools.join(", ") : "what its process is configured with"
							}),
							/* @__PURE__ */ a("td", {
								"data-label": "Registered",
								title: moment(worker.registered_at),
								children: ago(worker.registered_at, now)
							}),
							/* @__PURE__ */ a("td", {
								"data-label": "Heard of",
								children: worker.gone_at ? `gone ${ago(worker.gone_at, now)}` : worker.last_seen_at ? ago(worker.last_seen_at, now) : "in this store"
							}),
							/* @__PURE__ */ a("td", {
								"data-label": "Made with",
								children: worker.sdk ?? ""
							}),
							/* @__PURE__ */ a("td", { children: may(who, "operate") && worker.state === "running" && /* @__PURE__ */ a("button", {
								onClick: () => setDraining(worker),
								children: "Drain…"
							}) })
						]
					}, worker.id)) })
				]
			}) : /* @__PURE__ */ a(Empty, { children: "No worker has registered." })
		}),
		draining && /* @__PURE__ */ a(Dialog, {
			title: `Drain ${draining.name}`,
			act: "Drain it",
			danger: true,
			onAct: async () => {
				await post(`/api/v1/workers/${draining.id}/drain`, {});
				loaded.reload();
			},
			onClose: () => setDraining(void 0),
			children: /* @__PURE__ */ a("p", { children: "It finishes the calls it has and takes nothing more. This can not be taken back: the worker has to be started again." })
		})
	] });
}
/** The living first, the newest first among each. */
function inOrder(workers) {
	const rank = (worker) => worker.state === "gone" ? 1 : 0;
	return [...workers].sort((one, other) => rank(one) - rank(other) || other.registered_at.localeCompare(one.registered_at));
}
// src/main.tsx
var VIEWS = [
	["executions", "Executions"],
	["attention", "Needs attention"],
	["workers", "Workers"],
	["tools", "Tools"],
	["sessions", "Sessions"],
	["connect", "Connect"]
];
var THEMES = [
	"auto",
	"light",
	"dark"
];
var theme = new Signal(localStorage.getItem("durable-mcp-theme") ?? "auto");
var showTheme = () => document.documentElement.dataset.theme = theme.value;
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
	return /* @__PURE__ */ a($, { children: [
		/* @__PURE__ */ a(Top, { view }),
		/* @__PURE__ */ a("main", {
			tabIndex: -1,
			children: /* @__PURE__ */ a(View, {
				view,
				id
			})
		}),
		/* @__PURE__ */ a(SignIn, {})
	] });
}
function View({ view, id }) {
	switch (view) {
		case "executions": return id === void 0 ? /* @__PURE__ */ a(Executions, {}) : /* @__PURE__ */ a(Execution, { id }, id);
		case "attention": return /* @__PURE__ */ a(Attention, {});
		case "workers": return /* @__PURE__ */ a(Workers, {});
		case "tools": return id === void 0 ? /* @__PURE__ */ a(Tools, {}) : /* @__PURE__ */ a(OneTool, { name: id }, id);
		case "sessions": return /* @__PURE__ */ a(Sessions, {});
		case "connect": return /* @__PURE__ */ a(Connect, {});
		default: return /* @__PURE__ */ a(Empty, { children: ["There is no such view. ", /* @__PURE__ */ a("a", {
			href: href("executions"),
			children: "Executions"
		})] });
	}
}
function Top({ view }) {
	const shown = useSignal(theme);
	return /* @__PURE__ */ a("header", {
		class: "top",
		children: [
			/* @__PURE__ */ a("button", {
				class: "skip",
				onClick: () => document.querySelector("main")?.focus(),
				children: "To the content"
			}),
			/* @__PURE__ */ a("a", {
				class: "brand",
				href: href("executions"),
				children: [/* @__PURE__ */ a("img", {
					src: "./icon.svg",
					alt: "",
					width: "22",
					height: "22"
				}), " DurableMCP"]
			}),
			/* @__PURE__ */ a("nav", {
				"aria-label": "Views",
				children: VIEWS.map(([name, title]) => /* @__PURE__ */ a("a", {
					href: href(name),
					"aria-current": view === name ? "page" : void 0,
					children: [title, name === "attention" && /* @__PURE__ */ a(Unknown, {})]
				}, name))
			}),
			/* @__PURE__ */ a("span", {
				class: "top-right",
				children: [/* @__PURE__ */ a(Who, {}), /* @__PURE__ */ a("button", {
					onClick: () => theme.value = THEMES[(THEMES.indexOf(shown) + 1) % THEMES.length],
					title: "Light, dark, or as the system says",
					children: shown
				})]
			})
		]
	});
}
var UNKNOWN_SHOWN_MAX = 99;
/** Whether a call became unknown, or may have been one until now: a person, a late result or a look at the tool decided. */
function decidesAnUnknown(event) {
	return event.type === "lost" || event.by !== void 0 || event.source === "late_result" || event.source === "reconcile";
}
/** How many calls wait for a decision. */
function Unknown() {
	const loaded = useLoad("unknown", (signal) => get(`/api/v1/executions?state=unknown&limit=100`, signal), 3e4);
	useLive("", true, (events, missed) => {
		if (missed || events.some(decidesAnUnknown)) loaded.reload();
	});
	const number = loaded.data?.executions.length ?? 0;
	if (!number) return null;
	return /* @__PURE__ */ a("span", {
		class: "badge",
		children: number > UNKNOWN_SHOWN_MAX ? `${UNKNOWN_SHOWN_MAX}+` : number
	});
}
function Who() {
	const token = useSignal(credential);
	const loaded = useLoad("caller", (signal) => get("/api/v1/caller", signal));
	A(() => {
		caller.value = loaded.data;
	}, [loaded.data]);
	const who = loaded.data;
	return /* @__PURE__ */ a("span", {
		class: "who",
		children: [
			who ? `${who.principal}${who.namespace === "default" ? "" : ` in ${who.namespace}`}` : loaded.problem ? loaded.problem.message : "…",
			" ",
			token ? /* @__PURE__ */ a("button", {
				onClick: () => credential.value = void 0,
				children: "Forget token"
			}) : (!who || !who.actions || !who.payloads) && /* @__PURE__ */ a("button", {
				onClick: signIn,
				children: "Enter a token"
			})
		]
	});
}
Q(/* @__PURE__ */ a(Page, {}), document.getElementById("dashboard"));
