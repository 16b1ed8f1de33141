var n,t$1,u$1,i$1,f$2,o$2,e$1,l$1,c$1,a$2,h$1=Symbol.for("pv"),p$1={},y$1=[],v$1=/^m(i|n|o|s|text|space)$/,w$1=Array.isArray,d$1=y$1.slice,_$1=Object.assign;function g$1(n){n&&n.parentNode&&n.remove();}function m$1(r,u,i,f,o){var e={type:r,props:u,key:i,ref:f,__k:null,__:null,__b:0,__e:null,__c:null,constructor:h$1,__v:o||++t$1,__i:-1,__u:0};return !o&&n.vnode&&n.vnode(e),e}function $(n){return n.children}function x(n,t){this.props=n,this.context=t,this.__g=0;}function S(n,t){if(null==t)return n.__&&S(n.__,n.__i+1);for(var r;t<n.__k.length;t++)if((r=n.__k[t])&&r.__e)return r.__e;return "function"!=typeof n.type||n.props.__P?null:S(n)}function C$1(t){var r,u=t.__v,i=u.__e,f=[],o=[],e=t.__P;e&&((r=_$1({constructor:h$1},u)).__v=u.__v+1,n.vnode&&n.vnode(r),z$1(e,r,u,t.__n,e.namespaceURI,32&u.__u?[i]:null,f,i||S(u),32&u.__u,o),r.__v=u.__v,r.__.__k[r.__i]=r,E$1(f,r,o),u.__=u.__e=null,r.__e!=i&&j(r));}function j(n){if((n=n.__)&&n.__c&&!n.props.__P)return n.__e=null,n.__k.some(function(t){return t&&(n.__e=t.__e)}),j(n)}function L(t){(8&t.__g||(t.__g|=8,u$1.push(t),f$2++))&&i$1==n.debounceRendering||((i$1=n.debounceRendering)||queueMicrotask)(H);}function H(){try{for(var n,t=1;u$1.length;)u$1.length>t&&u$1.sort(o$2),n=u$1.shift(),t=u$1.length,8&n.__g&&C$1(n);}finally{(f$2=u$1.length)&&(i$1||queueMicrotask)(H);}}function I(n,t,r,u,i,f,o,e,l,c,a){var s,h,v,w,d,_,g=u.__k||y$1,k=t.length;for(l=q(r,t,g,l,k),s=0;s<k;s++)null!=(v=r.__k[s])&&(h=~v.__i&&g[v.__i]||p$1,v.__i=s,_=z$1(n,v,h,i,f,o,e,l,c,a),w=v.__e,(h.ref!=v.ref||8&h.__u)&&(h.ref&&G$1(h.ref,null,v,h),v.ref&&a.push(v.ref,v.__c||w,v)),d=d||w,4&v.__u?(l=A$1(v,l,n,!h.__v),h.__e&&(h.__e=null)):"function"==typeof v.type&&void 0!==_?l=_:w&&(l=w.nextSibling),v.__u&=-21);return r.__e=d,l}function q(n,t,r,u,i){var f,o,e,l,c,a,s,p,y,v=r.length,d=v,_=0,g=0,k=n.__k=Array(i);for(f=0;f<i;f++)null!=(o=t[f])&&"boolean"!=typeof o&&"function"!=typeof o?("object"!=typeof o||o.constructor===String?o=k[f]=m$1(null,o):w$1(o)?o=k[f]=m$1($,{children:o}):o.constructor===h$1&&o.__b?o=k[f]=m$1(o.type,o.props,o.key,o.ref,o.__v):k[f]=o,l=f+_,o.__=n,o.__b=n.__b+1,e=null,~(c=o.__i=P(o,r,l,d))&&(d--,(e=r[c])&&(e.__u|=2)),e&&e.__v?(o.__u|=16,c==l-1?_--:c==l+1?_++:c!=l&&(c>l?_--:_++,g=1)):(~c||(i>v?_--:i<v&&_++),"function"!=typeof o.type&&(o.__u|=4))):k[f]=null;if(g){for(a=[],s=[],f=0;f<i;f++)if((o=k[f])&&16&o.__u){for(_=0,p=a.length;_<p;)a[y=_+p>>1]<o.__i?_=y+1:p=y;a[_]=o.__i,s[f]=_+1;}for(_=a.length;f--;)s[f]&&(s[f]==_?_--:k[f].__u|=4);}if(d)for(f=0;f<v;f++)!(e=r[f])||2&e.__u||(e.__e==u&&(u=S(e)),J(e,e));return u}function A$1(n,t,r,u){var i,f,o,e;if("function"==typeof n.type){if(n.props.__P)return t;if(i=n.__k)for(f=0;f<i.length;f++)i[f]&&(i[f].__=n,t=A$1(i[f],t,r,false));return t}for(t&&!t.parentNode&&(t=S(n))&&!t.parentNode&&(t=null),o=n.__e,e=t;e&&8==e.nodeType;)e=e.nextSibling;for(o!=e&&(!u&&r.moveBefore&&o.parentNode?r.moveBefore(o,t):r.insertBefore(o,t||null)),t=o;(t=t&&t.nextSibling)&&8==t.nodeType&&!t.data.startsWith("$s"););return t}function P(n,t,r,u){var i,f=n.key,o=n.type,e=t[r],l=e&&!(2&e.__u);if(null===e&&null==f||l&&f==e.key&&o==e.type)return r;if(u>(l?1:0)){for(i=r-1;i>=0;i--)if((e=t[i])&&!(2&e.__u)&&f==e.key&&o==e.type)return i;for(i=r+1;i<t.length;i++)if((e=t[i])&&!(2&e.__u)&&f==e.key&&o==e.type)return i}return  -1}function T$1(n,t,r){null==r&&(r=""),"-"==t[0]?n.setProperty(t,r):n[t]=r;}function N(n,t,r,u,i){var f,o;if("style"==t)if("string"==typeof r)n.style.cssText=r;else {if("string"==typeof u&&(n.style.cssText=u=""),u)for(t in u)r&&t in r||T$1(n.style,t);if(r)for(t in r)u&&r[t]==u[t]||T$1(n.style,t,r[t]);}else if("o"==t[0]&&"n"==t[1])"function"!=typeof r&&(r=null),"function"!=typeof u&&(u=null),(n.__e||(n.__e={}))[t]=r,r&&u||(o=a$2[t]||(a$2[t]=V(t)),(n.__a||(n.__a={}))[t]=c$1,f=t!=(t=t.replace(l$1,"$1")),(t=t.slice(2))[0]<"a"&&(t=t.toLowerCase()),r?n.addEventListener(t,o,f):n.removeEventListener(t,o,f));else {if("http://www.w3.org/2000/svg"==i)t=t.replace(/xlink(H|:h)/,"h").replace(/sName$/,"s");else if("width"!=t&&"height"!=t&&"href"!=t&&"list"!=t&&"form"!=t&&"tabIndex"!=t&&"download"!=t&&"rowSpan"!=t&&"colSpan"!=t&&"role"!=t&&"popover"!=t&&t in n)try{return void(n[t]=null==r?"":r)}catch(n){}if("function"==typeof r)return;null==r||false===r&&"-"!=t[4]?n.removeAttribute(t):n.setAttribute(t,"popover"==t&&1==r?"":r);}}function V(t){return function(r){var u=this.__e;if(u){if(u=u[t],null==r[e$1])r[e$1]=c$1++;else if(r[e$1]<this.__a[t])return;return u(n.event?n.event(r):r)}}}function z$1(t,r,u,i,f,o,e,l,c,a){var s,p,v,d,k,b,m,M,C,j,L,H,q,A,O,P,T,N,V=r.type;if(r.constructor!==h$1)return null;128&u.__u&&(c=32&u.__u,s=u.__c.__z)&&(r.__u|=c,p=o=[],8==s.nodeType?l=B$1(s,o):o.push(s),l=o[0]||l),(s=n.__b)&&s(r);n:if("function"==typeof V){v=e.length;try{if(M=r.props,C=(s=V.prototype)&&s.render,j=(s=V.contextType)&&i[s.__c],L=s?j?j.props.value:s.__:i,(d=u.__c)?(r.__c=d,2&d.__g&&(d.__g|=1)):(C?r.__c=d=new V(M,L):(r.__c=d=new x(M,L),d.constructor=V,d.render=K),j&&j.sub(d),d.state||(d.state={}),d.__n=i,d.__g|=8,d.__h=[],d.__k=[]),C&&(d.__s||(d.__s=d.state),V.getDerivedStateFromProps&&(d.__s==d.state&&(d.__s=_$1({},d.__s)),_$1(d.__s,V.getDerivedStateFromProps(M,d.__s)))),k=d.props,b=d.state,d.__v=r,u.__c){if(M!==k&&C&&!V.getDerivedStateFromProps&&d.componentWillReceiveProps&&d.componentWillReceiveProps(M,L),r.__v==u.__v&&!(8&d.__g)||!(4&d.__g)&&d.shouldComponentUpdate&&!1===d.shouldComponentUpdate(M,d.__s,L)){r.__v!=u.__v&&(d.props=M,d.state=d.__s,d.__g&=-9),r.__e=u.__e,r.__k=u.__k,r.__k.some(function(n){n&&(n.__=r);}),y$1.push.apply(d.__h,d.__k),d.__k=[],d.__h.length&&e.push(d),l=S(u);break n}d.componentWillUpdate&&d.componentWillUpdate(M,d.__s,L),C&&d.componentDidUpdate&&d.__h.push(function(){d.componentDidUpdate(k,b,m);});}else C&&!V.getDerivedStateFromProps&&d.componentWillMount&&d.componentWillMount(),C&&d.componentDidMount&&d.__h.push(d.componentDidMount);d.context=L,d.props=M,d.__P=t,d.__g&=-5,H=n.__r,q=C?25:0;do{d.__g&=-9,H&&H(r),s=d.render(d.props,d.state=d.__s,d.context);}while(8&d.__g&&++q<25);C&&(y$1.push.apply(d.__h,d.__k),d.__k=[]),d.state=d.__s,d.getChildContext&&(i=_$1({},i,d.getChildContext())),C&&u.__c&&d.getSnapshotBeforeUpdate&&(m=d.getSnapshotBeforeUpdate(k,b)),A=s&&s.type===$&&null==s.key?s.props.children:s,M.__P&&(s=l,f=(t=M.__P).namespaceURI,c=o=null,u.props&&u.props.__P!=t&&(u.__k.some(function(n){n&&J(n,n);}),u.__k=null),l=u.__k?S(u,0):null),l=I(t,w$1(A)?A:[A],r,u,i,f,o,e,l,c,a),M.__P&&(r.__e=null,l=s),r.__u&=-161,p&&p.some(g$1),d.__h.length&&e.push(d),1&d.__g&&(d.__g&=-4);}catch(t){if(e.length=v,r.__v=null,c||o)if(t&&t.then){if(r.__u|=128|c,o){for(~(T=o.indexOf(l||void 0))||(T=o.length);(N=o[T-1])&&8==N.nodeType;)T--;for(;T<o.length;T++)if(N=o[T])if(o[T]=null,O){if(N==P)break}else {if(8!=N.nodeType)break;N.data.startsWith("$s")&&(P=B$1(O=N));}}if(!O){for(;l&&8==l.nodeType&&l.nextSibling;)l=l.nextSibling;O=l;}(s=B$1(O=r.__c.__z||(r.__c.__z=O)))?(r.__e=O,l=s):r.__e=l,l=l&&l.nextSibling;}else o&&o.some(g$1);else r.__e=u.__e;r.__k||(r.__k=u.__k||[]),t&&t.then||D$1(r),n.__e(t,r,u);}}else l=r.__e=F(u.__e,r,u,i,f,o,e,c,a,t);return (s=n.diffed)&&s(r),l}function B$1(n,t){if(n&&8==n.nodeType&&n.data.startsWith("$s"))for(var r=1;n=n.nextSibling;){if(8==n.nodeType)if(n.data.startsWith("$s"))r++;else if(n.data.startsWith("/$s")&&!--r)return n;t&&t.push(n);}}function D$1(n){n&&(n.__c&&(n.__c.__g|=4),n.__k&&n.__k.some(D$1));}function E$1(t,r,u){for(var i=0;i<u.length;)G$1(u[i++],u[i++],u[i++]);n.__c&&n.__c(r,t),t.some(function(r){try{t=r.__h,r.__h=[],t.some(function(n){n.call(r);});}catch(t){n.__e(t,r.__v);}});}function F(t,r,u,i,f,o,e,l,c,a){var s,h,y,_,k,b,m,M,$=u.props||p$1,x=r.props,C=r.type;if("svg"==C?f="http://www.w3.org/2000/svg":"math"==C?f="http://www.w3.org/1998/Math/MathML":f||(f="http://www.w3.org/1999/xhtml"),o)for(s=0;s<o.length;s++)if((k=o[s])&&(C?k.localName==C:3==k.nodeType)){t=k,o[s]=null;break}if(!t){if(M=a.ownerDocument||document,!C)return M.createTextNode(x);t=M.createElementNS(f,C,x.is?x:a),l&&(n.__m&&n.__m(r,o),l=false),o=null;}if(C){if(a="template"==C&&t.content||t,o="textarea"==C&&null!=x.defaultValue?null:o&&d$1.call(a.childNodes),!l&&o)for($={},s=0;s<t.attributes.length;s++)$[(k=t.attributes[s]).name]=k.value;for(s in $)k=$[s],"dangerouslySetInnerHTML"==s?y=k:"children"==s||s in x||"value"==s&&"defaultValue"in x||"checked"==s&&"defaultChecked"in x||N(t,s,null,k,f);for(s in x)k=x[s],"children"==s?_=k:"dangerouslySetInnerHTML"==s?h=k:"value"==s?b=k:"checked"==s?m=k:l&&"function"!=typeof k||$[s]===k||N(t,s,k,$[s],f);h?(l||y&&(h.__html==y.__html||h.__html==t.innerHTML)||(t.innerHTML=h.__html),r.__k=[]):(y&&(t.textContent=""),("foreignObject"==C||"http://www.w3.org/1998/Math/MathML"==f&&v$1.test(C))&&(f="http://www.w3.org/1999/xhtml"),I(a,w$1(_)?_:[_],r,u,i,f,o,e,o?o[0]:u.__k&&S(u,0),l,c),o&&o.some(g$1)),l&&"textarea"!=C||(s="value","progress"==C&&null==b?t.removeAttribute(s):null==b||b===t[s]&&("progress"!=C||b)||N(t,s,b,$[s],f),s="checked",null!=m&&m!=t[s]&&N(t,s,m,$[s],f));}else $===x||l&&t.data==x||(t.data=x);return t}function G$1(t,r,u,i){try{"function"==typeof t?r?r.__x=t(r)||1:i&&(i=i.__c||i.__e)&&(r=i.__x)&&(i.__x=null,"function"==typeof r?r():t(null)):t.current=r;}catch(t){n.__e(t,u);}}function J(t,r,u){var i,f,o,e;if(n.unmount&&n.unmount(t),!(i=t.ref)||i.current&&i.current!=t.__e||G$1(i,null,r,t),i=t.__c){if(i.componentWillUnmount)try{i.componentWillUnmount();}catch(t){n.__e(t,r);}i.__P=i.__n=null;}if(i=t.__k)for(e=0;e<i.length;e++)i[e]&&J(i[e],r,"function"!=typeof t.type||u&&!t.props.__P);!u&&(i=t.__c)&&(i=i.__z)&&(f=B$1(i,o=[]))&&(i==t.__e&&o.some(g$1),g$1(f),g$1(i)),u||g$1(t.__e),t.__e=t.__c=t.__=null;}function K(n,t,r){return this.constructor(n,r)}function Q(t,r){var u,i,f,o;n.__&&n.__(t,r),9==r.nodeType&&(r=r.documentElement),i=(u=t&&32&t.__u)?null:r.__k,r.__k=m$1($,{children:[t]}),f=[],o=[],z$1(r,r.__k,i||p$1,p$1,r.namespaceURI,i?null:r.firstChild?d$1.call(r.childNodes):null,f,i?i.__e:r.firstChild,u,o),E$1(f,r.__k,o),r.__k.props.children=null;}n={__e:function(n,t,r,u){for(var i,o,e;t=t.__;)if((i=t.__c)&&!(1&i.__g)){i.__g|=4;try{if((e=(o=i.constructor)&&o.getDerivedStateFromError)&&i.setState(o.getDerivedStateFromError(n)),i.componentDidCatch&&(i.componentDidCatch(n,u||{}),e=1),e&&8&i.__g)return void(i.__g|=2)}catch(t){n=t;}}throw f$2=0,n}},t$1=0,x.prototype.setState=function(n,t){var r=this.__s;r&&r!=this.state||(r=this.__s=_$1({},this.state)),"function"==typeof n&&(n=n(_$1({},r),this.props)),n&&(_$1(r,n),this.__v&&(t&&this.__k.push(t),L(this)));},x.prototype.forceUpdate=function(n){this.__v&&(this.__g|=4,n&&this.__h.push(n),L(this));},x.prototype.render=$,u$1=[],f$2=0,o$2=function(n,t){return n.__v.__b-t.__v.__b},e$1=Symbol(),l$1=/(PointerCapture)$|Capture$/i,c$1=0,a$2={};

var f$1=Symbol.for("pv"),o$1=0;function a$1(t,e,n$1,u,a,i){e||(e={});var c,l,p=e;if("ref"in p&&"function"!=typeof t)for(l in p={},e)"ref"==l?c=e[l]:p[l]=e[l];var s={type:t,props:p,key:n$1,ref:c,__k:null,__:null,__b:0,__e:null,__c:null,constructor:f$1,__v:--o$1,__i:-1,__u:0};return n.vnode&&n.vnode(s),s}

var t,r,u,i,o=Object.is,f=0,c=[],e=[],a=n,v=a.__b,l=a.__r,m=a.diffed,h=a.__c,s=a.unmount,p=a.__;function y(n,t){a.__h&&a.__h(r,n,f||t),f=0;var u=r.__H||(r.__H={__:[],__h:[]});return n>=u.__.length&&u.__.push({}),u.__[n]}function d(n){return f=1,_(G,n)}function _(n,u,i){var f=y(t++,2);if(f.t=n,!f.__c&&(f.__=[G(void 0,u),function(n){var t=(f.__N||f.__)[0],r=f.t(t,n);o(t,r)||(f.__N=[r,f.__[1]],f.__c.setState({}));}],f.__c=r,!r.__f)){r.__f=true;var c=r.shouldComponentUpdate;r.shouldComponentUpdate=function(n,t,r){var u=this.__H;if(!u)return  true;var i=false,f=this.props!=n;if(u.__.some(function(n){n.__N&&(i=true,o(n.__[0],n.__N[0])||(f=true));}),c){var e=c.call(this,n,t,r);return i?e||f:e}return !i||f};}return f.__}function A(n,u){var i=y(t++,3);!a.__s&&E(i.__H,u)&&(i.__P=true,i.__=n,i.u=u,r.__H.__h.push(i));}function T(n){return f=5,w(function(){return {current:n}},[])}function w(n,r){var u=y(t++,7);return E(u.__H,r)&&(u.__=n(),u.__H=r),u.__}function b(n,t){return f=8,w(function(){return n},t)}function g(){var n;do{for(;n=e.shift();)try{C(n);}catch(t){a.__e(t,{__:(n=n.__P)&&n.__v});}for(;n=c.shift();){var t=n.__H;if(n.__P&&t)try{t.__h.some(C),t.__h.some(D),t.__h=[];}catch(r){t.__h=[],a.__e(r,n.__v);}}}while(e.length)}a.__b=function(n){r=null,v&&v(n);},a.__=function(n,t){n&&t.__k&&t.__k.__m&&(n.__m=t.__k.__m),p&&p(n,t);},a.__r=function(n){l&&l(n),t=0;var i=(r=n.__c).__H;i&&(u==r?r.__h=[]:(i.__h.some(C),i.__h.some(D),t=0),i.__h=[],i.__.some(function(n){n.__N&&(n.__=n.__N),n.u=n.__N=void 0;})),u=r;},a.diffed=function(n){m&&m(n);var t=n.__c;t&&t.__H&&(t.__H.__h.length&&B(c.push(t)),t.__H.__.some(function(n){n.u&&(n.__H=n.u);})),u=r=null;},a.__c=function(n,t){t.some(function(n){try{n.__h.some(C),n.__h=n.__h.filter(function(n){return !n.__||D(n)});}catch(t){n.__h=[function(){throw t}];}}),h&&h(n,t);},a.unmount=function(n){s&&s(n);var t,r,u=n.__c;u&&u.__H&&(u.__H.__.some(function(u){try{if(u.__P&&u.__c){if(void 0===r){for(r=n.__;r&&(!r.__c||!r.__c.__P);)r=r.__;r=r&&r.__c;}u.__P=r,B(e.push(u));}else C(u);}catch(n){t=n;}}),u.__H=void 0,t&&a.__e(t,u.__v));};var k="function"==typeof requestAnimationFrame;function z(n){var t,r=function(){clearTimeout(u),k&&cancelAnimationFrame(t),setTimeout(n);},u=setTimeout(r,35);k&&(t=requestAnimationFrame(r));}function B(n){1!=n&&i==a.requestAnimationFrame||((i=a.requestAnimationFrame)||z)(g);}function C(n){var t=r,u=n.__c;"function"==typeof u&&(n.__c=void 0,u()),r=t;}function D(n){var t=r;n.__c=n.__(),r=t;}function E(n,t){return !n||n.length!=t.length||t.some(function(t,r){return !o(t,n[r])})}function G(n,t){return "function"==typeof t?t(n):t}

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
  A(() => signal.watch(() => redraw((count) => count + 1)), [signal]);
  return signal.value;
}

const KEY$1 = "durable-mcp-credential";
const credential = new Signal(sessionStorage.getItem(KEY$1) ?? void 0);
credential.watch(() => {
  if (credential.value) sessionStorage.setItem(KEY$1, credential.value);
  else sessionStorage.removeItem(KEY$1);
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
          /* @__PURE__ */ a$1("input", { type: "password", autocomplete: "off", value: token, onInput: (e) => setToken(e.currentTarget.value) })
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
  return { view: view || "overview", id: id ? decodeURIComponent(id) : void 0, query: new URLSearchParams(query) };
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

const THEMES = ["auto", "light", "dark"];
const KEY = "durable-mcp-theme";
const theme = new Signal(localStorage.getItem(KEY) ?? "auto");
const colours = new Signal(0);
const show = () => {
  document.documentElement.dataset.theme = theme.value;
  colours.value += 1;
};
theme.watch(() => {
  localStorage.setItem(KEY, theme.value);
  show();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
show();
function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
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
      const whole = Math.floor(ms / unitMs);
      const lesserMs = { s: 1e3, min: 6e4, h: 36e5 }[lesser];
      const rest = Math.floor((ms - whole * unitMs) / lesserMs);
      return rest ? `${whole} ${unit} ${rest} ${lesser}` : `${whole} ${unit}`;
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
      /* @__PURE__ */ a$1("input", { value: reason, maxLength: 1e3, onInput: (e) => setReason(e.currentTarget.value) })
    ] }),
    /* @__PURE__ */ a$1("p", { class: "quiet", children: "The reason is kept in the log with your name." })
  ] });
}

const SHOWN_MAX = 2e4;
function Payload({ name, first, more }) {
  const [text, setText] = d(first.text);
  const [read, setRead] = d(1);
  const [exact, setExact] = d(false);
  const [all, setAll] = d(false);
  const [problem, setProblem] = d();
  A(() => {
    setText(first.text);
    setRead(1);
  }, [first.text, first.pieces]);
  const whole = first.pieces === 1;
  const shown = exact || !whole ? text : laidOut(text);
  const cut = !all && shown.length > SHOWN_MAX;
  const next = () => more?.(read).then(
    (piece) => {
      setText(text + piece.text);
      setRead(read + 1);
      setProblem(void 0);
    },
    (error) => setProblem(error instanceof Error ? error.message : String(error))
  );
  return /* @__PURE__ */ a$1("figure", { class: "payload", children: [
    /* @__PURE__ */ a$1("figcaption", { children: [
      /* @__PURE__ */ a$1("strong", { children: name }),
      " ",
      /* @__PURE__ */ a$1("span", { class: "quiet", children: whole ? bytes(new Blob([text]).size) : `large: ${read} of ${first.pieces} pieces are here` }),
      whole && /* @__PURE__ */ a$1("button", { "aria-pressed": exact, onClick: () => setExact(!exact), children: exact ? "Lay out" : "Exact text" }),
      read === first.pieces && /* @__PURE__ */ a$1(Copy, { what: "the exact text", text })
    ] }),
    /* @__PURE__ */ a$1("pre", { tabIndex: 0, "aria-label": name, children: cut ? shown.slice(0, SHOWN_MAX) : shown }),
    cut && /* @__PURE__ */ a$1("button", { onClick: () => setAll(true), children: "Show all that is here" }),
    " ",
    read < first.pieces && /* @__PURE__ */ a$1("button", { onClick: next, children: "Get the next piece" }),
    problem && /* @__PURE__ */ a$1("p", { role: "alert", children: problem })
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
  const x = (ms) => (ms - life.startMs) / spanMs * WIDTH;
  const height = Math.max(life.holds.length, 1) * LANE + 8;
  const sentence = (hold) => `Attempt ${hold.attempt} at ${hold.worker}: ${ENDS[hold.end]} after ${duration((hold.toMs ?? now) - hold.fromMs)}`;
  const shownGaps = life.gaps.filter((gap) => (gap.toMs ?? endMs) - gap.fromMs > spanMs / 400);
  return /* @__PURE__ */ a$1("figure", { class: "timeline", children: [
    /* @__PURE__ */ a$1("svg", { viewBox: `0 0 ${WIDTH} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": "The leases of this call over time", children: [
      shownGaps.map((gap) => /* @__PURE__ */ a$1(
        "rect",
        {
          class: `gap gap-${gap.why}`,
          x: x(gap.fromMs),
          width: Math.max(x(gap.toMs ?? endMs) - x(gap.fromMs), 1),
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
          x: x(hold.fromMs),
          width: Math.max(x(hold.toMs ?? endMs) - x(hold.fromMs), 3),
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

async function whole$1(id, signal) {
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
  const loaded = useLoad(id, (signal) => whole$1(id, signal));
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
async function first(row, kind, signal) {
  const found = await piece(row, kind, 0, signal);
  return found.pieces > 0 ? found : void 0;
}
function piece(row, kind, number, signal) {
  return get(`/api/v1/executions/${row.id}/payloads/${kind}?piece=${number}`, signal);
}
function Texts({ row }) {
  const kind = row.state === "failed" ? "error" : "result";
  const loaded = useLoad(`${row.id} ${row.updated_at}`, async (signal) => {
    const [args2, ending2] = await Promise.all([first(row, "arguments", signal), first(row, kind, signal)]);
    return { args: args2, ending: ending2 };
  });
  if (loaded.problem) return /* @__PURE__ */ a$1(Failure, { problem: loaded.problem, reload: loaded.reload });
  if (!loaded.data) return /* @__PURE__ */ a$1(Loading, {});
  const { args, ending } = loaded.data;
  const more = (kind2) => (number) => piece(row, kind2, number);
  return /* @__PURE__ */ a$1($, { children: [
    args ? /* @__PURE__ */ a$1(Payload, { name: "Arguments", first: args, more: more("arguments") }) : /* @__PURE__ */ a$1(Empty, { children: "The arguments were deleted by retention." }),
    args?.pieces === 1 && /* @__PURE__ */ a$1(Copy, { what: "as a command", text: command(row, args.text) }),
    ending ? /* @__PURE__ */ a$1(Payload, { name: kind === "error" ? "Error of the server" : "Result", first: ending, more: more(kind) }) : /* @__PURE__ */ a$1(Empty, { children: row.state === "completed" ? "The result was deleted by retention." : "There is no result." })
  ] });
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

const Js="uplot",Zs="u-hz",Qs="u-vt",Xs="u-title",er="u-wrap",tr="u-under",lr="u-over",nr="u-axis",$t="u-off",ir="u-select",or="u-cursor-x",sr="u-cursor-y",rr="u-cursor-pt",fr="u-legend",ur="u-live",cr="u-inline",ar="u-series",pr="u-marker",ji="u-label",hr="u-value",Hl="width",Nl="height",qi="bottom",yl="left",Wn="right",Gn="#000",$i=Gn+"0",In="mousemove",Ji="mousedown",Yn="mouseup",Zi="mouseenter",Qi="mouseleave",Xi="dblclick",mr="resize",gr="scroll",eo="change",tn="dppxchange",Bn="--",vl=typeof window<"u",Un=vl?document:null,kl=vl?window:null,dr=vl?navigator:null;let oe,ln;function Kn(){let e=devicePixelRatio;oe!=e&&(oe=e,ln&&$n(eo,ln,Kn),ln=matchMedia(`(min-resolution: ${oe-.001}dppx) and (max-resolution: ${oe+.001}dppx)`),Jt(eo,ln,Kn),kl.dispatchEvent(new CustomEvent(tn)));}function Xe(e,i){if(i!=null){let o=e.classList;!o.contains(i)&&o.add(i);}}function jn(e,i){let o=e.classList;o.contains(i)&&o.remove(i);}function de(e,i,o){e.style[i]=o+"px";}function gt(e,i,o,n){let s=Un.createElement(e);return i!=null&&Xe(s,i),o?.insertBefore(s,n),s}function ft(e,i){return gt("div",e,i)}const to=new WeakMap;function bt(e,i,o,n,s){let a="translate("+i+"px,"+o+"px)",u=to.get(e);a!=u&&(e.style.transform=a,to.set(e,a),i<0||o<0||i>n||o>s?Xe(e,$t):jn(e,$t));}const lo=new WeakMap;function no(e,i,o){let n=i+o,s=lo.get(e);n!=s&&(lo.set(e,n),e.style.background=i,e.style.borderColor=o);}const io=new WeakMap;function oo(e,i,o,n){let s=i+""+o,a=io.get(e);s!=a&&(io.set(e,s),e.style.height=o+"px",e.style.width=i+"px",e.style.marginLeft=n?-i/2+"px":0,e.style.marginTop=n?-o/2+"px":0);}const qn={passive:true},wr={...qn,capture:true};function Jt(e,i,o,n){i.addEventListener(e,o,n?wr:qn);}function $n(e,i,o,n){i.removeEventListener(e,o,qn);}vl&&Kn();function dt(e,i,o,n){let s;o=o||0,n=n||i.length-1;let a=n<=2147483647;for(;n-o>1;)s=a?o+n>>1:tt((o+n)/2),i[s]<e?o=s:n=s;return e-i[o]<=i[n]-e?o:n}function so(e){return (o,n,s)=>{let a=-1,u=-1;for(let h=n;h<=s;h++)if(e(o[h])){a=h;break}for(let h=s;h>=n;h--)if(e(o[h])){u=h;break}return [a,u]}}const ro=e=>e!=null,fo=e=>e!=null&&e>0,nn=so(ro),Sr=so(fo);function _r(e,i,o,n=0,s=false){let a=s?Sr:nn,u=s?fo:ro;[i,o]=a(e,i,o);let h=e[i],m=e[i];if(i>-1)if(n==1)h=e[i],m=e[o];else if(n==-1)h=e[o],m=e[i];else for(let g=i;g<=o;g++){let y=e[g];u(y)&&(y<h?h=y:y>m&&(m=y));}return [h??ce,m??-ce]}function on(e,i,o,n){let s=ao(e),a=ao(i);e==i&&(s==-1?(e*=o,i/=o):(e/=o,i*=o));let u=o==10?Pt:po,h=s==1?tt:ut,m=a==1?ut:tt,g=h(u(Ae(e))),y=m(u(Ae(i))),d=xl(o,g),w=xl(o,y);return o==10&&(g<0&&(d=ae(d,-g)),y<0&&(w=ae(w,-y))),n||o==2?(e=d*s,i=w*a):(e=yo(e,d),i=fn(i,w)),[e,i]}function Jn(e,i,o,n){let s=on(e,i,o,n);return e==0&&(s[0]=0),i==0&&(s[1]=0),s}const Zn=.1,uo={mode:3,pad:Zn},Wl={pad:0,soft:null,mode:0},yr={min:Wl,max:Wl};function sn(e,i,o,n){return un(o)?co(e,i,o):(Wl.pad=o,Wl.soft=n?0:null,Wl.mode=n?3:0,co(e,i,yr))}function ne(e,i){return e??i}function vr(e,i,o){for(i=ne(i,0),o=ne(o,e.length-1);i<=o;){if(e[i]!=null)return  true;i++;}return  false}function co(e,i,o){let n=o.min,s=o.max,a=ne(n.pad,0),u=ne(s.pad,0),h=ne(n.hard,-ce),m=ne(s.hard,ce),g=ne(n.soft,ce),y=ne(s.soft,-ce),d=ne(n.mode,0),w=ne(s.mode,0),L=i-e,D=Pt(L),O=Be(Ae(e),Ae(i)),N=Pt(O),G=Ae(N-D);(L<1e-24||G>10)&&(L=0,(e==0||i==0)&&(L=1e-24,d==2&&g!=ce&&(a=0),w==2&&y!=-ce&&(u=0)));let k=L||O||1e3,H=Pt(k),x=xl(10,tt(H)),q=k*(L==0?e==0?.1:1:a),P=ae(yo(e-q,x/10),24),$=e>=g&&(d==1||d==3&&P<=g||d==2&&P>=g)?g:ce,U=Be(h,P<$&&e>=$?$:wt($,P)),Q=k*(L==0?i==0?.1:1:u),B=ae(fn(i+Q,x/10),24),T=i<=y&&(w==1||w==3&&B>=y||w==2&&B<=y)?y:-ce,j=wt(m,B>T&&i<=T?T:Be(T,B));return U==j&&U==0&&(j=100),[U,j]}const kr=new Intl.NumberFormat(vl?dr.language:"en-US"),Qn=e=>kr.format(e),et=Math,rn=et.PI,Ae=et.abs,tt=et.floor,Ee=et.round,ut=et.ceil,wt=et.min,Be=et.max,xl=et.pow,ao=et.sign,Pt=et.log10,po=et.log2,xr=(e,i=1)=>et.sinh(e)*i,Xn=(e,i=1)=>et.asinh(e/i),ce=1/0;function ho(e){return (Pt((e^e>>31)-(e>>31))|0)+1}function ei(e,i,o){return wt(Be(e,i),o)}function mo(e){return typeof e=="function"}function X(e){return mo(e)?e:()=>e}const Tr=()=>{},go=e=>e,wo=(e,i)=>i,br=e=>null,So=e=>true,_o=(e,i)=>e==i,Mr=/\.\d*?(?=9{6,}|0{6,})/gm,Zt=e=>{if(ko(e)||Ot.has(e))return e;const i=`${e}`,o=i.match(Mr);if(o==null)return e;let n=o[0].length-1;if(i.indexOf("e-")!=-1){let[s,a]=i.split("e");return +`${Zt(s)}e${a}`}return ae(e,n)};function Qt(e,i){return Zt(ae(Zt(e/i))*i)}function fn(e,i){return Zt(ut(Zt(e/i))*i)}function yo(e,i){return Zt(tt(Zt(e/i))*i)}function ae(e,i=0){if(ko(e))return e;let o=10**i,n=e*o*(1+Number.EPSILON);return Ee(n)/o}const Ot=new Map;function vo(e){return ((""+e).split(".")[1]||"").length}function Gl(e,i,o,n){let s=[],a=n.map(vo);for(let u=i;u<o;u++){let h=Ae(u),m=ae(xl(e,u),h);for(let g=0;g<n.length;g++){let y=e==10?+`${n[g]}e${u}`:n[g]*m,d=(u>=0?0:h)+(u>=a[g]?0:a[g]),w=e==10?y:ae(y,d);s.push(w),Ot.set(w,d);}}return s}const Il={},ti=[],Tl=[null,null],Ht=Array.isArray,ko=Number.isInteger,Ar=e=>e===void 0;function xo(e){return typeof e=="string"}function un(e){let i=false;if(e!=null){let o=e.constructor;i=o==null||o==Object;}return i}function Er(e){return e!=null&&typeof e=="object"}const Pr=Object.getPrototypeOf(Uint8Array),To="__proto__";function bl(e,i=un){let o;if(Ht(e)){let n=e.find(s=>s!=null);if(Ht(n)||i(n)){o=Array(e.length);for(let s=0;s<e.length;s++)o[s]=bl(e[s],i);}else o=e.slice();}else if(e instanceof Pr)o=e.slice();else if(i(e)){o={};for(let n in e)n!=To&&(o[n]=bl(e[n],i));}else o=e;return o}function Te(e){let i=arguments;for(let o=1;o<i.length;o++){let n=i[o];for(let s in n)s!=To&&(un(e[s])?Te(e[s],bl(n[s])):e[s]=bl(n[s]));}return e}const Dr=0,Lr=1,Cr=2;function Vr(e,i,o){for(let n=0,s,a=-1;n<i.length;n++){let u=i[n];if(u>a){for(s=u-1;s>=0&&e[s]==null;)e[s--]=null;for(s=u+1;s<o&&e[s]==null;)e[a=s++]=null;}}}function Rr(e,i){if(Or(e)){let u=e[0].slice();for(let h=1;h<e.length;h++)u.push(...e[h].slice(1));return Hr(u[0])||(u=Fr(u)),u}let o=new Set;for(let u=0;u<e.length;u++){let m=e[u][0],g=m.length;for(let y=0;y<g;y++)o.add(m[y]);}let n=[Array.from(o).sort((u,h)=>u-h)],s=n[0].length,a=new Map;for(let u=0;u<s;u++)a.set(n[0][u],u);for(let u=0;u<e.length;u++){let h=e[u],m=h[0];for(let g=1;g<h.length;g++){let y=h[g],d=Array(s).fill(void 0),w=i?i[u][g]:Lr,L=[];for(let D=0;D<y.length;D++){let O=y[D],N=a.get(m[D]);O===null?w!=Dr&&(d[N]=O,w==Cr&&L.push(N)):d[N]=O;}Vr(d,L,s),n.push(d);}}return n}const zr=typeof queueMicrotask>"u"?e=>Promise.resolve().then(e):queueMicrotask;function Fr(e){let i=e[0],o=i.length,n=Array(o);for(let a=0;a<n.length;a++)n[a]=a;n.sort((a,u)=>i[a]-i[u]);let s=[];for(let a=0;a<e.length;a++){let u=e[a],h=Array(o);for(let m=0;m<o;m++)h[m]=u[n[m]];s.push(h);}return s}function Or(e){let i=e[0][0],o=i.length;for(let n=1;n<e.length;n++){let s=e[n][0];if(s.length!=o)return  false;if(s!=i){for(let a=0;a<o;a++)if(s[a]!=i[a])return  false}}return  true}function Hr(e,i=100){const o=e.length;if(o<=1)return  true;let n=0,s=o-1;for(;n<=s&&e[n]==null;)n++;for(;s>=n&&e[s]==null;)s--;if(s<=n)return  true;const a=Be(1,tt((s-n+1)/i));for(let u=e[n],h=n+a;h<=s;h+=a){const m=e[h];if(m!=null){if(m<=u)return  false;u=m;}}return  true}const bo=["January","February","March","April","May","June","July","August","September","October","November","December"],Mo=["Sunday","Monday","Tuesday","Wednesday","Thursday","Friday","Saturday"];function Ao(e){return e.slice(0,3)}const Nr=Mo.map(Ao),Wr=bo.map(Ao),Gr={MMMM:bo,MMM:Wr,WWWW:Mo,WWW:Nr};function Yl(e){return (e<10?"0":"")+e}function Ir(e){return (e<10?"00":e<100?"0":"")+e}const Yr={YYYY:e=>e.getFullYear(),YY:e=>(e.getFullYear()+"").slice(2),MMMM:(e,i)=>i.MMMM[e.getMonth()],MMM:(e,i)=>i.MMM[e.getMonth()],MM:e=>Yl(e.getMonth()+1),M:e=>e.getMonth()+1,DD:e=>Yl(e.getDate()),D:e=>e.getDate(),WWWW:(e,i)=>i.WWWW[e.getDay()],WWW:(e,i)=>i.WWW[e.getDay()],HH:e=>Yl(e.getHours()),H:e=>e.getHours(),h:e=>{let i=e.getHours();return i==0?12:i>12?i-12:i},AA:e=>e.getHours()>=12?"PM":"AM",aa:e=>e.getHours()>=12?"pm":"am",a:e=>e.getHours()>=12?"p":"a",mm:e=>Yl(e.getMinutes()),m:e=>e.getMinutes(),ss:e=>Yl(e.getSeconds()),s:e=>e.getSeconds(),fff:e=>Ir(e.getMilliseconds())};function li(e,i){i=i||Gr;let o=[],n=/\{([a-z]+)\}|[^{]+/gi,s;for(;s=n.exec(e);)o.push(s[0][0]=="{"?Yr[s[1]]:s[0]);return a=>{let u="";for(let h=0;h<o.length;h++)u+=typeof o[h]=="string"?o[h]:o[h](a,i);return u}}const Br=new Intl.DateTimeFormat().resolvedOptions().timeZone;function Ur(e,i){let o;return i=="UTC"||i=="Etc/UTC"?o=new Date(+e+e.getTimezoneOffset()*6e4):i==Br?o=e:(o=new Date(e.toLocaleString("en-US",{timeZone:i})),o.setMilliseconds(e.getMilliseconds())),o}const Eo=e=>e%1==0,cn=[1,2,2.5,5],Kr=Gl(10,-32,0,cn),Po=Gl(10,0,32,cn),jr=Po.filter(Eo),Xt=Kr.concat(Po),ni=`
`,Do="{YYYY}",Lo=ni+Do,Co="{M}/{D}",Bl=ni+Co,an=Bl+"/{YY}",Vo="{aa}",qr="{h}:{mm}",Ml=qr+Vo,Ro=ni+Ml,zo=":{ss}",re=null;function Fo(e){let i=e*1e3,o=i*60,n=o*60,s=n*24,a=s*30,u=s*365,m=(e==1?Gl(10,0,3,cn).filter(Eo):Gl(10,-3,0,cn)).concat([i,i*5,i*10,i*15,i*30,o,o*5,o*10,o*15,o*30,n,n*2,n*3,n*4,n*6,n*8,n*12,s,s*2,s*3,s*4,s*5,s*6,s*7,s*8,s*9,s*10,s*15,a,a*2,a*3,a*4,a*6,u,u*2,u*5,u*10,u*25,u*50,u*100]);const g=[[u,Do,re,re,re,re,re,re,1],[s*28,"{MMM}",Lo,re,re,re,re,re,1],[s,Co,Lo,re,re,re,re,re,1],[n,"{h}"+Vo,an,re,Bl,re,re,re,1],[o,Ml,an,re,Bl,re,re,re,1],[i,zo,an+" "+Ml,re,Bl+" "+Ml,re,Ro,re,1],[e,zo+".{fff}",an+" "+Ml,re,Bl+" "+Ml,re,Ro,re,1]];function y(d){return (w,L,D,O,N,G)=>{let k=[],H=N>=u,x=N>=a&&N<u,q=d(D),P=ae(q*e,3),$=ii(q.getFullYear(),H?0:q.getMonth(),x||H?1:q.getDate()),U=ae($*e,3);if(x||H){let Q=x?N/a:0,B=H?N/u:0,T=P==U?P:ae(ii($.getFullYear()+B,$.getMonth()+Q,1)*e,3),j=new Date(Ee(T/e)),C=j.getFullYear(),I=j.getMonth();for(let F=0;T<=O;F++){let ee=ii(C+B*F,I+Q*F,1),z=ee-d(ae(ee*e,3));T=ae((+ee+z)*e,3),T<=O&&k.push(T);}}else {let Q=N>=s?s:N,B=tt(D)-tt(P),T=U+B+fn(P-U,Q);k.push(T);let j=d(T),C=j.getHours()+j.getMinutes()/o+j.getSeconds()/n,I=N/n,F=w.axes[L]._space,ee=G/F;for(;T=ae(T+N,e==1?0:3),!(T>O);)if(I>1){let z=tt(ae(C+I,6))%24,te=d(T).getHours()-z;te>1&&(te=-1),T-=te*n,C=(C+I)%24;let fe=k[k.length-1];ae((T-fe)/N,3)*ee>=.7&&k.push(T);}else k.push(T);}return k}}return [m,g,y]}const[$r,Jr,Zr]=Fo(1),[Qr,Xr,ef]=Fo(.001);Gl(2,-53,53,[1]);function Oo(e,i){return e.map(o=>o.map((n,s)=>s==0||s==8||n==null?n:i(s==1||o[8]==0?n:o[1]+n)))}function Ho(e,i){return (o,n,s,a,u)=>{let h=i.find(D=>u>=D[0])||i[i.length-1],m,g,y,d,w,L;return n.map(D=>{let O=e(D),N=O.getFullYear(),G=O.getMonth(),k=O.getDate(),H=O.getHours(),x=O.getMinutes(),q=O.getSeconds(),P=N!=m&&h[2]||G!=g&&h[3]||k!=y&&h[4]||H!=d&&h[5]||x!=w&&h[6]||q!=L&&h[7]||h[1];return m=N,g=G,y=k,d=H,w=x,L=q,P(O)})}}function tf(e,i){let o=li(i);return (n,s,a,u,h)=>s.map(m=>o(e(m)))}function ii(e,i,o){return new Date(e,i,o)}function No(e,i){return i(e)}const lf="{YYYY}-{MM}-{DD} {h}:{mm}{aa}";function Wo(e,i){return (o,n,s,a)=>a==null?Bn:i(e(n))}function nf(e,i){let o=e.series[i];return o.width?o.stroke(e,i):o.points.width?o.points.stroke(e,i):null}function of(e,i){return e.series[i].fill(e,i)}const sf={show:true,live:true,isolate:false,mount:Tr,markers:{show:true,width:2,stroke:nf,fill:of,dash:"solid"},idx:null,idxs:null,values:[]};function rf(e,i){let o=e.cursor.points,n=ft(),s=o.size(e,i);de(n,Hl,s),de(n,Nl,s);let a=s/-2;de(n,"marginLeft",a),de(n,"marginTop",a);let u=o.width(e,i,s);return u&&de(n,"borderWidth",u),n}function ff(e,i){let o=e.series[i].points;return o._fill||o._stroke}function uf(e,i){let o=e.series[i].points;return o._stroke||o._fill}function cf(e,i){return e.series[i].points.size}const oi=[0,0];function af(e,i,o){return oi[0]=i,oi[1]=o,oi}function pn(e,i,o,n=true){return s=>{s.button==0&&(!n||s.target==i)&&o(s);}}function si(e,i,o,n=true){return s=>{(!n||s.target==i)&&o(s);}}const pf={show:true,x:true,y:true,lock:false,move:af,points:{one:false,show:rf,size:cf,width:0,stroke:uf,fill:ff},bind:{mousedown:pn,mouseup:pn,click:pn,dblclick:pn,mousemove:si,mouseleave:si,mouseenter:si},drag:{setScale:true,x:true,y:false,dist:0,uni:null,click:(e,i)=>{i.stopPropagation(),i.stopImmediatePropagation();},_x:false,_y:false},focus:{dist:(e,i,o,n,s)=>n-s,prox:-1,bias:0},hover:{skip:[void 0],prox:null,bias:0},left:-10,top:-10,idx:null,dataIdx:null,idxs:null,event:null},Go={show:true,stroke:"rgba(0,0,0,0.07)",width:2},ri=Te({},Go,{filter:wo}),Io=Te({},ri,{size:10}),Yo=Te({},Go,{show:false}),fi='12px system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, "Noto Sans", sans-serif, "Apple Color Emoji", "Segoe UI Emoji", "Segoe UI Symbol", "Noto Color Emoji"',Bo="bold "+fi,Uo=1.5,Ko={show:true,scale:"x",stroke:Gn,space:50,gap:5,alignTo:1,size:50,labelGap:0,labelSize:30,labelFont:Bo,side:2,grid:ri,ticks:Io,border:Yo,font:fi,lineGap:Uo,rotate:0},hf="Value",mf="Time",jo={show:true,scale:"x",auto:false,sorted:1,min:ce,max:-ce,idxs:[]};function gf(e,i,o,n,s){return i.map(a=>a==null?"":Qn(a))}function df(e,i,o,n,s,a,u){let h=[],m=Ot.get(s)||0;o=u?o:ae(fn(o,s),m);for(let g=o;g<=n;g=ae(g+s,m))h.push(Object.is(g,-0)?0:g);return h}function ui(e,i,o,n,s,a,u){const h=[],m=e.scales[e.axes[i].scale].log,g=m==10?Pt:po,y=tt(g(o));s=xl(m,y),m==10&&(s=Xt[dt(s,Xt)]);let d=o,w=s*m;m==10&&(w=Xt[dt(w,Xt)]);do h.push(d),d=d+s,m==10&&!Ot.has(d)&&(d=ae(d,Ot.get(s))),d>=w&&(s=d,w=s*m,m==10&&(w=Xt[dt(w,Xt)]));while(d<=n);return h}function wf(e,i,o,n,s,a,u){let m=e.scales[e.axes[i].scale].asinh,g=n>m?ui(e,i,Be(m,o),n,s):[m],y=n>=0&&o<=0?[0]:[];return (o<-m?ui(e,i,Be(m,-n),-o,s):[m]).reverse().map(w=>-w).concat(y,g)}const qo=/./,Sf=/[12357]/,_f=/[125]/,$o=/1/,ci=(e,i,o,n)=>e.map((s,a)=>i==4&&s==0||a%n==0&&o.test(s.toExponential()[s<0?1:0])?s:null);function yf(e,i,o,n,s){let a=e.axes[o],u=a.scale,h=e.scales[u],m=e.valToPos,g=a._space,y=m(10,u),d=m(9,u)-y>=g?qo:m(7,u)-y>=g?Sf:m(5,u)-y>=g?_f:$o;if(d==$o){let w=Ae(m(1,u)-y);if(w<g)return ci(i.slice().reverse(),h.distr,d,ut(g/w)).reverse()}return ci(i,h.distr,d,1)}function vf(e,i,o,n,s){let a=e.axes[o],u=a.scale,h=a._space,m=e.valToPos,g=Ae(m(1,u)-m(2,u));return g<h?ci(i.slice().reverse(),3,qo,ut(h/g)).reverse():i}function kf(e,i,o,n){return n==null?Bn:i==null?"":Qn(i)}const Jo={show:true,scale:"y",stroke:Gn,space:30,gap:5,alignTo:1,size:50,labelGap:0,labelSize:30,labelFont:Bo,side:3,grid:ri,ticks:Io,border:Yo,font:fi,lineGap:Uo,rotate:0};function xf(e,i){let o=3+(e||1)*2;return ae(o*i,3)}function Tf(e,i){let{scale:o,idxs:n}=e.series[0],s=e._data[0],a=e.valToPos(s[n[0]],o,true),u=e.valToPos(s[n[1]],o,true),h=Ae(u-a),m=e.series[i],g=h/(m.points.space*oe);return n[1]-n[0]<=g}const Zo={scale:null,auto:true,sorted:0,min:ce,max:-ce},Qo=(e,i,o,n,s)=>s,Xo={show:true,auto:true,sorted:0,gaps:Qo,alpha:1,facets:[Te({},Zo,{scale:"x"}),Te({},Zo,{scale:"y"})]},es={scale:"y",auto:true,sorted:0,show:true,spanGaps:false,gaps:Qo,alpha:1,points:{show:Tf,filter:null},values:null,min:ce,max:-ce,idxs:[],path:null,clip:null};function bf(e,i,o,n,s){return o/10}const ts={time:true,auto:true,distr:1,log:10,asinh:1,min:null,max:null,dir:1,ori:0},Mf=Te({},ts,{time:false,ori:1}),ls={};function ns(e,i){let o=ls[e];return o||(o={key:e,plots:[],sub(n){o.plots.push(n);},unsub(n){o.plots=o.plots.filter(s=>s!=n);},pub(n,s,a,u,h,m,g){for(let y=0;y<o.plots.length;y++)o.plots[y]!=s&&o.plots[y].pub(n,s,a,u,h,m,g);}},e!=null&&(ls[e]=o)),o}const Al=1,ai=2;function el(e,i,o){const n=e.mode,s=e.series[i],a=n==2?e._data[i]:e._data,u=e.scales,h=e.bbox;let m=a[0],g=n==2?a[1]:a[i],y=n==2?u[s.facets[0].scale]:u[e.series[0].scale],d=n==2?u[s.facets[1].scale]:u[s.scale],w=h.left,L=h.top,D=h.width,O=h.height,N=e.valToPosH,G=e.valToPosV;return y.ori==0?o(s,m,g,y,d,N,G,w,L,D,O,mn,El,dn,ss,fs):o(s,m,g,y,d,G,N,L,w,O,D,gn,Pl,mi,rs,us)}function pi(e,i){let o=0,n=0,s=ne(e.bands,ti);for(let a=0;a<s.length;a++){let u=s[a];u.series[0]==i?o=u.dir:u.series[1]==i&&(u.dir==1?n|=1:n|=2);}return [o,n==1?-1:n==2?1:n==3?2:0]}function Af(e,i,o,n,s){let a=e.mode,u=e.series[i],h=a==2?u.facets[1].scale:u.scale,m=e.scales[h];return s==-1?m.min:s==1?m.max:m.distr==3?m.dir==1?m.min:m.max:0}function Dt(e,i,o,n,s,a){return el(e,i,(u,h,m,g,y,d,w,L,D,O,N)=>{let G=u.pxRound;const k=g.dir*(g.ori==0?1:-1),H=g.ori==0?El:Pl;let x,q;k==1?(x=o,q=n):(x=n,q=o);let P=G(d(h[x],g,O,L)),$=G(w(m[x],y,N,D)),U=G(d(h[q],g,O,L)),Q=G(w(a==1?y.max:y.min,y,N,D)),B=new Path2D(s);return H(B,U,Q),H(B,P,Q),H(B,P,$),B})}function hn(e,i,o,n,s,a){let u=null;if(e.length>0){u=new Path2D;const h=i==0?dn:mi;let m=o;for(let d=0;d<e.length;d++){let w=e[d];if(w[1]>w[0]){let L=w[0]-m;L>0&&h(u,m,n,L,n+a),m=w[1];}}let g=o+s-m,y=10;g>0&&h(u,m,n-y/2,g,n+a+y);}return u}function Ef(e,i,o){let n=e[e.length-1];n&&n[0]==i?n[1]=o:e.push([i,o]);}function hi(e,i,o,n,s,a,u){let h=[],m=e.length;for(let g=s==1?o:n;g>=o&&g<=n;g+=s)if(i[g]===null){let d=g,w=g;if(s==1)for(;++g<=n&&i[g]===null;)w=g;else for(;--g>=o&&i[g]===null;)w=g;let L=a(e[d]),D=w==d?L:a(e[w]),O=d-s;L=u<=0&&O>=0&&O<m?a(e[O]):L;let G=w+s;D=u>=0&&G>=0&&G<m?a(e[G]):D,D>=L&&h.push([L,D]);}return h}function is(e){return e==0?go:e==1?Ee:i=>Qt(i,e)}function os(e){let i=e==0?mn:gn,o=e==0?(s,a,u,h,m,g)=>{s.arcTo(a,u,h,m,g);}:(s,a,u,h,m,g)=>{s.arcTo(u,a,m,h,g);},n=e==0?(s,a,u,h,m)=>{s.rect(a,u,h,m);}:(s,a,u,h,m)=>{s.rect(u,a,m,h);};return (s,a,u,h,m,g=0,y=0)=>{g==0&&y==0?n(s,a,u,h,m):(g=wt(g,h/2,m/2),y=wt(y,h/2,m/2),i(s,a+g,u),o(s,a+h,u,a+h,u+m,g),o(s,a+h,u+m,a,u+m,y),o(s,a,u+m,a,u,y),o(s,a,u,a+h,u,g),s.closePath());}}const mn=(e,i,o)=>{e.moveTo(i,o);},gn=(e,i,o)=>{e.moveTo(o,i);},El=(e,i,o)=>{e.lineTo(i,o);},Pl=(e,i,o)=>{e.lineTo(o,i);},dn=os(0),mi=os(1),ss=(e,i,o,n,s,a)=>{e.arc(i,o,n,s,a);},rs=(e,i,o,n,s,a)=>{e.arc(o,i,n,s,a);},fs=(e,i,o,n,s,a,u)=>{e.bezierCurveTo(i,o,n,s,a,u);},us=(e,i,o,n,s,a,u)=>{e.bezierCurveTo(o,i,s,n,u,a);};function cs(e){return (i,o,n,s,a)=>el(i,o,(u,h,m,g,y,d,w,L,D,O,N)=>{let{pxRound:G,points:k}=u,H,x;g.ori==0?(H=mn,x=ss):(H=gn,x=rs);const q=ae(k.width*oe,3);let P=(k.size-k.width)/2*oe,$=ae(P*2,3),U=new Path2D,Q=new Path2D,{left:B,top:T,width:j,height:C}=i.bbox;dn(Q,B-$,T-$,j+$*2,C+$*2);const I=F=>{if(m[F]!=null){let ee=G(d(h[F],g,O,L)),z=G(w(m[F],y,N,D));H(U,ee+P,z),x(U,ee,z,P,0,rn*2);}};if(a)a.forEach(I);else for(let F=n;F<=s;F++)I(F);return {stroke:q>0?U:null,fill:U,clip:Q,flags:Al|ai}})}function as(e){return (i,o,n,s,a,u)=>{n!=s&&(a!=n&&u!=n&&e(i,o,n),a!=s&&u!=s&&e(i,o,s),e(i,o,u));}}const Pf=as(El),Df=as(Pl);function ps(e){const i=ne(e?.alignGaps,0);return (o,n,s,a)=>el(o,n,(u,h,m,g,y,d,w,L,D,O,N)=>{[s,a]=nn(m,s,a);let G=u.pxRound,k=C=>G(d(C,g,O,L)),H=C=>G(w(C,y,N,D)),x,q;g.ori==0?(x=El,q=Pf):(x=Pl,q=Df);const P=g.dir*(g.ori==0?1:-1),$={stroke:new Path2D,fill:null,clip:null,band:null,gaps:null,flags:Al},U=$.stroke;let Q=false;if(a-s>=O*4){let C=V=>o.posToVal(V,g.key,true),I=null,F=null,ee,z,Ue,we=k(h[P==1?s:a]),te=k(h[s]),fe=k(h[a]),J=C(P==1?te+1:fe-1);for(let V=P==1?s:a;V>=s&&V<=a;V+=P){let be=h[V],Se=(P==1?be<J:be>J)?we:k(be),se=m[V];Se==we?se!=null?(z=se,I==null?(x(U,Se,H(z)),ee=I=F=z):z<I?I=z:z>F&&(F=z)):se===null&&(Q=true):(I!=null&&q(U,we,H(I),H(F),H(ee),H(z)),se!=null?(z=se,x(U,Se,H(z)),I=F=ee=z):(I=F=null,se===null&&(Q=true)),we=Se,J=C(we+P));}I!=null&&I!=F&&Ue!=we&&q(U,we,H(I),H(F),H(ee),H(z));}else for(let C=P==1?s:a;C>=s&&C<=a;C+=P){let I=m[C];I===null?Q=true:I!=null&&x(U,k(h[C]),H(I));}let[T,j]=pi(o,n);if(u.fill!=null||T!=0){let C=$.fill=new Path2D(U),I=u.fillTo(o,n,u.min,u.max,T),F=H(I),ee=k(h[s]),z=k(h[a]);P==-1&&([z,ee]=[ee,z]),x(C,z,F),x(C,ee,F);}if(!u.spanGaps){let C=[];Q&&C.push(...hi(h,m,s,a,P,k,i)),$.gaps=C=u.gaps(o,n,s,a,C),$.clip=hn(C,g.ori,L,D,O,N);}return j!=0&&($.band=j==2?[Dt(o,n,s,a,U,-1),Dt(o,n,s,a,U,1)]:Dt(o,n,s,a,U,j)),$})}function Lf(e){const i=ne(e.align,1),o=ne(e.ascDesc,false),n=ne(e.alignGaps,0),s=ne(e.extend,false);return (a,u,h,m)=>el(a,u,(g,y,d,w,L,D,O,N,G,k,H)=>{[h,m]=nn(d,h,m);let x=g.pxRound,{left:q,width:P}=a.bbox,$=te=>x(D(te,w,k,N)),U=te=>x(O(te,L,H,G)),Q=w.ori==0?El:Pl;const B={stroke:new Path2D,fill:null,clip:null,band:null,gaps:null,flags:Al},T=B.stroke,j=w.dir*(w.ori==0?1:-1);let C=U(d[j==1?h:m]),I=$(y[j==1?h:m]),F=I,ee=I;s&&i==-1&&(ee=q,Q(T,ee,C)),Q(T,I,C);for(let te=j==1?h:m;te>=h&&te<=m;te+=j){let fe=d[te];if(fe==null)continue;let J=$(y[te]),V=U(fe);i==1?Q(T,J,C):Q(T,F,V),Q(T,J,V),C=V,F=J;}let z=F;s&&i==1&&(z=q+P,Q(T,z,C));let[Ue,we]=pi(a,u);if(g.fill!=null||Ue!=0){let te=B.fill=new Path2D(T),fe=g.fillTo(a,u,g.min,g.max,Ue),J=U(fe);Q(te,z,J),Q(te,ee,J);}if(!g.spanGaps){let te=[];te.push(...hi(y,d,h,m,j,$,n));let fe=g.width*oe/2,J=o||i==1?fe:-fe,V=o||i==-1?-fe:fe;te.forEach(be=>{be[0]+=J,be[1]+=V;}),B.gaps=te=g.gaps(a,u,h,m,te),B.clip=hn(te,w.ori,N,G,k,H);}return we!=0&&(B.band=we==2?[Dt(a,u,h,m,T,-1),Dt(a,u,h,m,T,1)]:Dt(a,u,h,m,T,we)),B})}function hs(e,i,o,n,s,a,u=ce){if(e.length>1){let h=null;for(let m=0,g=1/0;m<e.length;m++)if(i[m]!==void 0){if(h!=null){let y=Ae(e[m]-e[h]);y<g&&(g=y,u=Ae(o(e[m],n,s,a)-o(e[h],n,s,a)));}h=m;}}return u}function Cf(e){e=e||Il;const i=ne(e.size,[.6,ce,1]),o=e.align||0,n=e.gap||0;let s=e.radius;s=s==null?[0,0]:typeof s=="number"?[s,0]:s;const a=X(s),u=1-i[0],h=ne(i[1],ce),m=ne(i[2],1),g=ne(e.disp,Il),y=ne(e.each,L=>{}),{fill:d,stroke:w}=g;return (L,D,O,N)=>el(L,D,(G,k,H,x,q,P,$,U,Q,B,T)=>{let j=G.pxRound,C=o,I=n*oe,F=h*oe,ee=m*oe,z,Ue;x.ori==0?[z,Ue]=a(L,D):[Ue,z]=a(L,D);const we=x.dir*(x.ori==0?1:-1);let te=x.ori==0?dn:mi,fe=x.ori==0?y:(A,pe,Me,il,Gt,_t,It)=>{y(A,pe,Me,Gt,il,It,_t);},J=ne(L.bands,ti).find(A=>A.series[0]==D),V=J!=null?J.dir:0,be=G.fillTo(L,D,G.min,G.max,V),Ne=j($(be,q,T,Q)),Se,se,ct,qe=B,ye=j(G.width*oe),St=false,Mt=null,lt=null,Lt=null,tl=null;d!=null&&(ye==0||w!=null)&&(St=true,Mt=d.values(L,D,O,N),lt=new Map,new Set(Mt).forEach(A=>{A!=null&&lt.set(A,new Path2D);}),ye>0&&(Lt=w.values(L,D,O,N),tl=new Map,new Set(Lt).forEach(A=>{A!=null&&tl.set(A,new Path2D);})));let{x0:ll,size:Dl}=g;if(ll!=null&&Dl!=null){C=1,k=ll.values(L,D,O,N),ll.unit==2&&(k=k.map(Me=>L.posToVal(U+Me*B,x.key,true)));let A=Dl.values(L,D,O,N);Dl.unit==2?se=A[0]*B:se=P(A[0],x,B,U)-P(0,x,B,U),qe=hs(k,H,P,x,B,U,qe),ct=qe-se+I;}else qe=hs(k,H,P,x,B,U,qe),ct=qe*u+I,se=qe-ct;ct<1&&(ct=0),ye>=se/2&&(ye=0),ct<5&&(j=go);let Ul=ct>0,Nt=qe-ct-(Ul?ye:0);se=j(ei(Nt,ee,F)),Se=(C==0?se/2:C==we?0:se)-C*we*((C==0?I/2:0)+(Ul?ye/2:0));const We={stroke:null,fill:null,clip:null,band:null,gaps:null,flags:0},nl=St?null:new Path2D;let At=null;if(J!=null)At=L.data[J.series[1]];else {let{y0:A,y1:pe}=g;A!=null&&pe!=null&&(H=pe.values(L,D,O,N),At=A.values(L,D,O,N));}let Wt=z*se,K=Ue*se;for(let A=we==1?O:N;A>=O&&A<=N;A+=we){let pe=H[A];if(pe==null)continue;if(At!=null){let Ke=At[A]??0;if(pe-Ke==0)continue;Ne=$(Ke,q,T,Q);}let Me=x.distr!=2||g!=null?k[A]:A,il=P(Me,x,B,U),Gt=$(ne(pe,be),q,T,Q),_t=j(il-Se),It=j(Be(Gt,Ne)),$e=j(wt(Gt,Ne)),nt=It-$e;if(pe!=null){let Ke=pe<0?K:Wt,at=pe<0?Wt:K;St?(ye>0&&Lt[A]!=null&&te(tl.get(Lt[A]),_t,$e+tt(ye/2),se,Be(0,nt-ye),Ke,at),Mt[A]!=null&&te(lt.get(Mt[A]),_t,$e+tt(ye/2),se,Be(0,nt-ye),Ke,at)):te(nl,_t,$e+tt(ye/2),se,Be(0,nt-ye),Ke,at),fe(L,D,A,_t-ye/2,$e,se+ye,nt);}}return ye>0?We.stroke=St?tl:nl:St||(We._fill=G.width==0?G._fill:G._stroke??G._fill,We.width=0),We.fill=St?lt:nl,We})}function Vf(e,i){const o=ne(i?.alignGaps,0);return (n,s,a,u)=>el(n,s,(h,m,g,y,d,w,L,D,O,N,G)=>{[a,u]=nn(g,a,u);let k=h.pxRound,H=z=>k(w(z,y,N,D)),x=z=>k(L(z,d,G,O)),q,P,$;y.ori==0?(q=mn,$=El,P=fs):(q=gn,$=Pl,P=us);const U=y.dir*(y.ori==0?1:-1);let Q=H(m[U==1?a:u]),B=Q,T=[],j=[];for(let z=U==1?a:u;z>=a&&z<=u;z+=U)if(g[z]!=null){let we=m[z],te=H(we);T.push(B=te),j.push(x(g[z]));}const C={stroke:e(T,j,q,$,P,k),fill:null,clip:null,band:null,gaps:null,flags:Al},I=C.stroke;let[F,ee]=pi(n,s);if(h.fill!=null||F!=0){let z=C.fill=new Path2D(I),Ue=h.fillTo(n,s,h.min,h.max,F),we=x(Ue);$(z,B,we),$(z,Q,we);}if(!h.spanGaps){let z=[];z.push(...hi(m,g,a,u,U,H,o)),C.gaps=z=h.gaps(n,s,a,u,z),C.clip=hn(z,y.ori,D,O,N,G);}return ee!=0&&(C.band=ee==2?[Dt(n,s,a,u,I,-1),Dt(n,s,a,u,I,1)]:Dt(n,s,a,u,I,ee)),C})}function Rf(e){return Vf(zf,e)}function zf(e,i,o,n,s,a){const u=e.length;if(u<2)return null;const h=new Path2D;if(o(h,e[0],i[0]),u==2)n(h,e[1],i[1]);else {let m=Array(u),g=Array(u-1),y=Array(u-1),d=Array(u-1);for(let w=0;w<u-1;w++)y[w]=i[w+1]-i[w],d[w]=e[w+1]-e[w],g[w]=y[w]/d[w];m[0]=g[0];for(let w=1;w<u-1;w++)g[w]===0||g[w-1]===0||g[w-1]>0!=g[w]>0?m[w]=0:(m[w]=3*(d[w-1]+d[w])/((2*d[w]+d[w-1])/g[w-1]+(d[w]+2*d[w-1])/g[w]),isFinite(m[w])||(m[w]=0));m[u-1]=g[u-2];for(let w=0;w<u-1;w++)s(h,e[w]+d[w]/3,i[w]+m[w]*d[w]/3,e[w+1]-d[w]/3,i[w+1]-m[w+1]*d[w]/3,e[w+1],i[w+1]);}return h}const gi=new Set;function ms(){for(let e of gi)e.syncRect(true);}vl&&(Jt(mr,kl,ms),Jt(gr,kl,ms,true),Jt(tn,kl,()=>{He.pxRatio=oe;}));const Ff=ps(),Of=cs();function gs(e,i,o,n){return (n?[e[0],e[1]].concat(e.slice(2)):[e[0]].concat(e.slice(1))).map((a,u)=>di(a,u,i,o))}function Hf(e,i){return e.map((o,n)=>n==0?{}:Te({},i,o))}function di(e,i,o,n){return Te({},i==0?o:n,e)}function ds(e,i,o){return i==null?Tl:[i,o]}const Nf=ds;function Wf(e,i,o){return i==null?Tl:sn(i,o,Zn,true)}function ws(e,i,o,n){return i==null?Tl:on(i,o,e.scales[n].log,false)}const Gf=ws;function Ss(e,i,o,n){return i==null?Tl:Jn(i,o,e.scales[n].log,false)}const If=Ss;function Yf(e,i,o,n,s){let a=Be(ho(e),ho(i)),u=i-e,h=dt(s/n*u,o);do{let m=o[h],g=n*m/u;if(g>=s&&a+(m<5?Ot.get(m):0)<=17)return [m,g]}while(++h<o.length);return [0,0]}function _s(e){let i,o;return e=e.replace(/(\d+)px/,(n,s)=>(i=Ee((o=+s)*oe))+"px"),[e,i,o]}function Bf(e){e.show&&[e.font,e.labelFont].forEach(i=>{let o=ae(i[2]*oe,1);i[0]=i[0].replace(/[0-9.]+px/,o+"px"),i[1]=o;});}function He(e,i,o){const n={mode:ne(e.mode,1)},s=n.mode;function a(t,l,r,f){let c=l.valToPct(t);return f+r*(l.dir==-1?1-c:c)}function u(t,l,r,f){let c=l.valToPct(t);return f+r*(l.dir==-1?c:1-c)}function h(t,l,r,f){return l.ori==0?a(t,l,r,f):u(t,l,r,f)}n.valToPosH=a,n.valToPosV=u;let m=false;n.status=0;const g=n.root=ft(Js);if(e.id!=null&&(g.id=e.id),Xe(g,e.class),e.title){let t=ft(Xs,g);t.textContent=e.title;}const y=gt("canvas"),d=n.ctx=y.getContext("2d"),w=ft(er,g);Jt("click",w,t=>{t.target===D&&(he!=gl||_e!=dl)&&Fe.click(n,t);},true);const L=n.under=ft(tr,w);w.appendChild(y);const D=n.over=ft(lr,w);e=bl(e);const O=+ne(e.pxAlign,1),N=is(O);(e.plugins||[]).forEach(t=>{t.opts&&(e=t.opts(n,e)||e);});const G=e.ms||.001,k=n.series=s==1?gs(e.series||[],jo,es,false):Hf(e.series||[null],Xo),H=n.axes=gs(e.axes||[],Ko,Jo,true),x=n.scales={},q=n.bands=e.bands||[];q.forEach(t=>{t.fill=X(t.fill||null),t.dir=ne(t.dir,-1);});const P=s==2?k[1].facets[0].scale:k[0].scale,$={axes:zs,series:Ds},U=(e.drawOrder||["axes","series"]).map(t=>$[t]);function Q(t){const l=t.distr==3?r=>Pt(r>0?r:t.clamp(n,r,t.min,t.max,t.key)):t.distr==4?r=>Xn(r,t.asinh):t.distr==100?r=>t.fwd(r):r=>r;return r=>{let f=l(r),{_min:c,_max:p}=t,S=p-c;return (f-c)/S}}function B(t){let l=x[t];if(l==null){let r=(e.scales||Il)[t]||Il;if(r.from!=null){B(r.from);let f=Te({},x[r.from],r,{key:t});f.valToPct=Q(f),x[t]=f;}else {l=x[t]=Te({},t==P?ts:Mf,r),l.key=t;let f=l.time,c=l.range,p=Ht(c);if((t!=P||s==2&&!f)&&(p&&(c[0]==null||c[1]==null)&&(c={min:c[0]==null?uo:{mode:1,hard:c[0],soft:c[0]},max:c[1]==null?uo:{mode:1,hard:c[1],soft:c[1]}},p=false),!p&&un(c))){let S=c;c=(_,v,b)=>v==null?Tl:sn(v,b,S);}l.range=X(c||(f?Nf:t==P?l.distr==3?Gf:l.distr==4?If:ds:l.distr==3?ws:l.distr==4?Ss:Wf)),l.auto=X(p?false:l.auto),l.clamp=X(l.clamp||bf),l._min=l._max=null,l.valToPct=Q(l);}}}B("x"),B("y"),s==1&&k.forEach(t=>{B(t.scale);}),H.forEach(t=>{B(t.scale);});for(let t in e.scales)B(t);const T=x[P],j=T.distr;let C,I;T.ori==0?(Xe(g,Zs),C=a,I=u):(Xe(g,Qs),C=u,I=a);const F={};for(let t in x){let l=x[t];(l.min!=null||l.max!=null)&&(F[t]={min:l.min,max:l.max},l.min=l.max=null);}const ee=e.tzDate||(t=>new Date(Ee(t/G))),z=e.fmtDate||li,Ue=G==1?Zr(ee):ef(ee),we=Ho(ee,Oo(G==1?Jr:Xr,z)),te=Wo(ee,No(lf,z)),fe=[],J=n.legend=Te({},sf,e.legend),V=n.cursor=Te({},pf,{drag:{y:s==2}},e.cursor),be=J.show,Ne=V.show,Se=J.markers;J.idxs=fe,Se.width=X(Se.width),Se.dash=X(Se.dash),Se.stroke=X(Se.stroke),Se.fill=X(Se.fill);let se,ct,qe,ye=[],St=[],Mt,lt=false,Lt={};if(J.live){const t=k[1]?k[1].values:null;lt=t!=null,Mt=lt?t(n,1,0):{_:0};for(let l in Mt)Lt[l]=Bn;}if(be)if(se=gt("table",fr,g),qe=gt("tbody",null,se),J.mount(n,se),lt){ct=gt("thead",null,se,qe);let t=gt("tr",null,ct);gt("th",null,t);for(var tl in Mt)gt("th",ji,t).textContent=tl;}else Xe(se,cr),J.live&&Xe(se,ur);const ll={show:true},Dl={show:false};function Ul(t,l){if(l==0&&(lt||!J.live||s==2))return Tl;let r=[],f=gt("tr",ar,qe,qe.childNodes[l]);Xe(f,t.class),t.show||Xe(f,$t);let c=gt("th",null,f);if(Se.show){let _=ft(pr,c);if(l>0){let v=Se.width(n,l);v&&(_.style.border=v+"px "+Se.dash(n,l)+" "+Se.stroke(n,l)),_.style.background=Se.fill(n,l);}}let p=ft(ji,c);t.label instanceof HTMLElement?p.appendChild(t.label):p.textContent=t.label,l>0&&(Se.show||(p.style.color=t.width>0?Se.stroke(n,l):Se.fill(n,l)),We("click",c,_=>{if(V._lock)return;Bt(_);let v=k.indexOf(t);if((_.ctrlKey||_.metaKey)!=J.isolate){let b=k.some((M,E)=>E>0&&E!=v&&M.show);k.forEach((M,E)=>{E>0&&vt(E,b?E==v?ll:Dl:ll,true,xe.setSeries);});}else vt(v,{show:!t.show},true,xe.setSeries);},false),sl&&We(Zi,c,_=>{V._lock||(Bt(_),vt(k.indexOf(t),Sl,true,xe.setSeries));},false));for(var S in Mt){let _=gt("td",hr,f);_.textContent="--",r.push(_);}return [f,r]}const Nt=new Map;function We(t,l,r,f=true){const c=Nt.get(l)||{},p=V.bind[t](n,l,r,f);p&&(Jt(t,l,c[t]=p),Nt.set(l,c));}function nl(t,l,r){const f=Nt.get(l)||{};for(let c in f)(t==null||c==t)&&($n(c,l,f[c]),delete f[c]);t==null&&Nt.delete(l);}let At=0,Wt=0,K=0,A=0,pe=0,Me=0,il=pe,Gt=Me,_t=K,It=A,$e=0,nt=0,Ke=0,at=0;n.bbox={};let wn=false,Kl=false,ol=false,Yt=false,jl=false,it=false;function Sn(t,l,r){(r||t!=n.width||l!=n.height)&&wi(t,l),al(false),ol=true,Kl=true,pl();}function wi(t,l){n.width=At=K=t,n.height=Wt=A=l,pe=Me=0,xs(),Ts();let r=n.bbox;$e=r.left=Qt(pe*oe,.5),nt=r.top=Qt(Me*oe,.5),Ke=r.width=Qt(K*oe,.5),at=r.height=Qt(A*oe,.5);}const ys=3;function vs(){let t=false,l=0;for(;!t;){l++;let r=Vs(l),f=Rs(l);t=l==ys||r&&f,t||(wi(n.width,n.height),Kl=true);}}function ks({width:t,height:l}){Sn(t,l);}n.setSize=ks;function xs(){let t=false,l=false,r=false,f=false;H.forEach((c,p)=>{if(c.show&&c._show){let{side:S,_size:_}=c,v=S%2,b=c.label!=null?c.labelSize:0,M=_+b;M>0&&(v?(K-=M,S==3?(pe+=M,f=true):r=true):(A-=M,S==0?(Me+=M,t=true):l=true));}}),Ut[0]=t,Ut[1]=r,Ut[2]=l,Ut[3]=f,K-=Ct[1]+Ct[3],pe+=Ct[3],A-=Ct[2]+Ct[0],Me+=Ct[0];}function Ts(){let t=pe+K,l=Me+A,r=pe,f=Me;function c(p,S){switch(p){case 1:return t+=S,t-S;case 2:return l+=S,l-S;case 3:return r-=S,r+S;case 0:return f-=S,f+S}}H.forEach((p,S)=>{if(p.show&&p._show){let _=p.side;p._pos=c(_,p._size),p.label!=null&&(p._lpos=c(_,p.labelSize));}});}if(V.dataIdx==null){let t=V.hover,l=t.skip=new Set(t.skip??[]);l.add(void 0);let r=t.prox=X(t.prox),f=t.bias??=0;V.dataIdx=(c,p,S,_)=>{if(p==0)return S;let v=S,b=r(c,p,S,_)??ce,M=b>=0&&b<ce,E=T.ori==0?K:A,Y=V.left,ie=i[0],le=i[p];if(l.has(le[S])){v=null;let Z=null,W=null,R;if(f==0||f==-1)for(R=S;Z==null&&R-- >0;)l.has(le[R])||(Z=R);if(f==0||f==1)for(R=S;W==null&&R++<le.length;)l.has(le[R])||(W=R);if(Z!=null||W!=null)if(M){let ge=Z==null?-1/0:C(ie[Z],T,E,0),ve=W==null?1/0:C(ie[W],T,E,0),Re=Y-ge,ue=ve-Y;Re<=ue?Re<=b&&(v=Z):ue<=b&&(v=W);}else v=W==null?Z:Z==null?W:S-Z<=W-S?Z:W;}else M&&Ae(Y-C(ie[S],T,E,0))>b&&(v=null);return v};}const Bt=t=>{V.event=t;};V.idxs=fe,V._lock=false;let Oe=V.points;Oe.show=X(Oe.show),Oe.size=X(Oe.size),Oe.stroke=X(Oe.stroke),Oe.width=X(Oe.width),Oe.fill=X(Oe.fill);const yt=n.focus=Te({},e.focus||{alpha:.3},V.focus),sl=yt.prox>=0,rl=sl&&Oe.one;let ot=[],fl=[],ul=[];function Si(t,l){let r=Oe.show(n,l);if(r instanceof HTMLElement)return Xe(r,rr),Xe(r,t.class),bt(r,-10,-10,K,A),D.insertBefore(r,ot[l]),r}function _i(t,l){if(s==1||l>0){let r=s==1&&x[t.scale].time,f=t.value;t.value=r?xo(f)?Wo(ee,No(f,z)):f||te:f||kf,t.label=t.label||(r?mf:hf);}if(rl||l>0){t.width=t.width==null?1:t.width,t.paths=t.paths||Ff||br,t.fillTo=X(t.fillTo||Af),t.pxAlign=+ne(t.pxAlign,O),t.pxRound=is(t.pxAlign),t.stroke=X(t.stroke||null),t.fill=X(t.fill||null),t._stroke=t._fill=t._paths=t._focus=null;let r=xf(Be(1,t.width),1),f=t.points=Te({},{size:r,width:Be(1,r*.2),stroke:t.stroke,space:r*2,paths:Of,_stroke:null,_fill:null},t.points);f.show=X(f.show),f.filter=X(f.filter),f.fill=X(f.fill),f.stroke=X(f.stroke),f.paths=X(f.paths),f.pxAlign=t.pxAlign;}if(be){let r=Ul(t,l);ye.splice(l,0,r[0]),St.splice(l,0,r[1]),J.values.push(null);}if(Ne){fe.splice(l,0,null);let r=null;rl?l==0&&(r=Si(t,l)):l>0&&(r=Si(t,l)),ot.splice(l,0,r),fl.splice(l,0,0),ul.splice(l,0,0);}Ve("addSeries",l);}function bs(t,l){l=l??k.length,t=s==1?di(t,l,jo,es):di(t,l,{},Xo),k.splice(l,0,t),_i(k[l],l);}n.addSeries=bs;function Ms(t){if(k.splice(t,1),be){J.values.splice(t,1),St.splice(t,1);let l=ye.splice(t,1)[0];nl(null,l.firstChild),l.remove();}Ne&&(fe.splice(t,1),ot.splice(t,1)[0].remove(),fl.splice(t,1),ul.splice(t,1)),Ve("delSeries",t);}n.delSeries=Ms;const Ut=[false,false,false,false];function As(t,l){if(t._show=t.show,t.show){let r=t.side%2,f=x[t.scale];f==null&&(t.scale=r?k[1].scale:P,f=x[t.scale]);let c=f.time;t.size=X(t.size),t.space=X(t.space),t.rotate=X(t.rotate),Ht(t.incrs)&&t.incrs.forEach(S=>{!Ot.has(S)&&Ot.set(S,vo(S));}),t.incrs=X(t.incrs||(f.distr==2?jr:c?G==1?$r:Qr:Xt)),t.splits=X(t.splits||(c&&f.distr==1?Ue:f.distr==3?ui:f.distr==4?wf:df)),t.stroke=X(t.stroke),t.grid.stroke=X(t.grid.stroke),t.ticks.stroke=X(t.ticks.stroke),t.border.stroke=X(t.border.stroke);let p=t.values;t.values=Ht(p)&&!Ht(p[0])?X(p):c?Ht(p)?Ho(ee,Oo(p,z)):xo(p)?tf(ee,p):p||we:p||gf,t.filter=X(t.filter||(f.distr>=3&&f.log==10?yf:f.distr==3&&f.log==2?vf:wo)),t.font=_s(t.font),t.labelFont=_s(t.labelFont),t._size=t.size(n,null,l,0),t._space=t._rotate=t._incrs=t._found=t._splits=t._values=null,t._size>0&&(Ut[l]=true,t._el=ft(nr,w));}}function Ll(t,l,r,f){let[c,p,S,_]=r,v=l%2,b=0;return v==0&&(_||p)&&(b=l==0&&!c||l==2&&!S?Ee(Ko.size/3):0),v==1&&(c||S)&&(b=l==1&&!p||l==3&&!_?Ee(Jo.size/2):0),b}const yi=n.padding=(e.padding||[Ll,Ll,Ll,Ll]).map(t=>X(ne(t,Ll))),Ct=n._padding=yi.map((t,l)=>t(n,l,Ut,0));let ze,Pe=null,De=null;const ql=s==1?k[0].idxs:null;let pt=null,Cl=false;function vi(t,l){if(i=t??[],n.data=n._data=i,s==2){ze=0;for(let r=1;r<k.length;r++)ze+=i[r][0].length;}else {i.length==0&&(n.data=n._data=i=[[]]),pt=i[0],ze=pt.length;let r=i;if(j==2){r=i.slice();let f=r[0]=Array(ze);for(let c=0;c<ze;c++)f[c]=c;}n._data=i=r;}if(al(true),Ve("setData"),j==2&&(ol=true),l!==false){let r=T;r.auto(n,Cl)?_n():Rt(P,r.min,r.max),Yt=Yt||V.left>=0,it=true,pl();}}n.setData=vi;function _n(){Cl=true;let t,l;s==1&&(ze>0?(Pe=ql[0]=0,De=ql[1]=ze-1,t=i[0][Pe],l=i[0][De],j==2?(t=Pe,l=De):t==l&&(j==3?[t,l]=on(t,t,T.log,false):j==4?[t,l]=Jn(t,t,T.log,false):T.time?l=t+Ee(86400/G):[t,l]=sn(t,l,Zn,true))):(Pe=ql[0]=t=null,De=ql[1]=l=null)),Rt(P,t,l);}let $l,cl,yn,vn,kn,xn,Tn,bn,Mn,je;function ki(t,l,r,f,c,p){t??=$i,r??=ti,f??="butt",c??=$i,p??="round",t!=$l&&(d.strokeStyle=$l=t),c!=cl&&(d.fillStyle=cl=c),l!=yn&&(d.lineWidth=yn=l),p!=kn&&(d.lineJoin=kn=p),f!=xn&&(d.lineCap=xn=f),r!=vn&&d.setLineDash(vn=r);}function xi(t,l,r,f){l!=cl&&(d.fillStyle=cl=l),t!=Tn&&(d.font=Tn=t),r!=bn&&(d.textAlign=bn=r),f!=Mn&&(d.textBaseline=Mn=f);}function An(t,l,r,f,c=0){if(f.length>0&&t.auto(n,Cl)&&(l==null||l.min==null)){let p=ne(Pe,0),S=ne(De,f.length-1),_=r.min==null?_r(f,p,S,c,t.distr==3):[r.min,r.max];t.min=wt(t.min,r.min=_[0]),t.max=Be(t.max,r.max=_[1]);}}const Ti={min:null,max:null};function Es(){for(let f in x){let c=x[f];F[f]==null&&(c.min==null||F[P]!=null&&c.auto(n,Cl))&&(F[f]=Ti);}for(let f in x){let c=x[f];F[f]==null&&c.from!=null&&F[c.from]!=null&&(F[f]=Ti);}F[P]!=null&&al(true);let t={};for(let f in F){let c=F[f];if(c!=null){let p=t[f]=bl(x[f],Er);if(c.min!=null)Te(p,c);else if(f!=P||s==2)if(ze==0&&p.from==null){let S=p.range(n,null,null,f);p.min=S[0],p.max=S[1];}else p.min=ce,p.max=-ce;}}if(ze>0){k.forEach((f,c)=>{if(s==1){let p=f.scale,S=F[p];if(S==null)return;let _=t[p];if(c==0){let v=_.range(n,_.min,_.max,p);_.min=v[0],_.max=v[1],Pe=dt(_.min,i[0]),De=dt(_.max,i[0]),De-Pe>1&&(i[0][Pe]<_.min&&Pe++,i[0][De]>_.max&&De--),f.min=pt[Pe],f.max=pt[De];}else f.show&&f.auto&&An(_,S,f,i[c],f.sorted);f.idxs[0]=Pe,f.idxs[1]=De;}else if(c>0&&f.show&&f.auto){let[p,S]=f.facets,_=p.scale,v=S.scale,[b,M]=i[c],E=t[_],Y=t[v];E!=null&&An(E,F[_],p,b,p.sorted),Y!=null&&An(Y,F[v],S,M,S.sorted),f.min=S.min,f.max=S.max;}});for(let f in t){let c=t[f],p=F[f];if(c.from==null&&(p==null||p.min==null)){let S=c.range(n,c.min==ce?null:c.min,c.max==-ce?null:c.max,f);c.min=S[0],c.max=S[1];}}}for(let f in t){let c=t[f];if(c.from!=null){let p=t[c.from];if(p.min==null)c.min=c.max=null;else {let S=c.range(n,p.min,p.max,f);c.min=S[0],c.max=S[1];}}}let l={},r=false;for(let f in t){let c=t[f],p=x[f];if(p.min!=c.min||p.max!=c.max){p.min=c.min,p.max=c.max;let S=p.distr;p._min=S==3?Pt(p.min):S==4?Xn(p.min,p.asinh):S==100?p.fwd(p.min):p.min,p._max=S==3?Pt(p.max):S==4?Xn(p.max,p.asinh):S==100?p.fwd(p.max):p.max,l[f]=r=true;}}if(r){k.forEach((f,c)=>{s==2?c>0&&l.y&&(f._paths=null):l[f.scale]&&(f._paths=null);});for(let f in l)ol=true,Ve("setScale",f);Ne&&V.left>=0&&(Yt=it=true);}for(let f in F)F[f]=null;}function Ps(t){let l=ei(Pe-1,0,ze-1),r=ei(De+1,0,ze-1);for(;t[l]==null&&l>0;)l--;for(;t[r]==null&&r<ze-1;)r++;return [l,r]}function Ds(){if(ze>0){let t=k.some(l=>l._focus)&&je!=yt.alpha;t&&(d.globalAlpha=je=yt.alpha),k.forEach((l,r)=>{if(r>0&&l.show&&(bi(r,false),bi(r,true),l._paths==null)){let f=je;je!=l.alpha&&(d.globalAlpha=je=l.alpha);let c=s==2?[0,i[r][0].length-1]:Ps(i[r]);l._paths=l.paths(n,r,c[0],c[1]),je!=f&&(d.globalAlpha=je=f);}}),k.forEach((l,r)=>{if(r>0&&l.show){let f=je;je!=l.alpha&&(d.globalAlpha=je=l.alpha),l._paths!=null&&Mi(r,false);{let c=l._paths!=null?l._paths.gaps:null,p=l.points.show(n,r,Pe,De,c),S=l.points.filter(n,r,p,c);(p||S)&&(l.points._paths=l.points.paths(n,r,Pe,De,S),Mi(r,true));}je!=f&&(d.globalAlpha=je=f),Ve("drawSeries",r);}}),t&&(d.globalAlpha=je=1);}}function bi(t,l){let r=l?k[t].points:k[t];r._stroke=r.stroke(n,t),r._fill=r.fill(n,t);}function Mi(t,l){let r=l?k[t].points:k[t],{stroke:f,fill:c,clip:p,flags:S,_stroke:_=r._stroke,_fill:v=r._fill,_width:b=r.width}=r._paths;b=ae(b*oe,3);let M=null,E=b%2/2;l&&v==null&&(v=b>0?"#fff":_);let Y=r.pxAlign==1&&E>0;if(Y&&d.translate(E,E),!l){let ie=$e-b/2,le=nt-b/2,Z=Ke+b,W=at+b;M=new Path2D,M.rect(ie,le,Z,W);}l?En(_,b,r.dash,r.cap,v,f,c,S,p):Ls(t,_,b,r.dash,r.cap,v,f,c,S,M,p),Y&&d.translate(-E,-E);}function Ls(t,l,r,f,c,p,S,_,v,b,M){let E=false;v!=0&&q.forEach((Y,ie)=>{if(Y.series[0]==t){let le=k[Y.series[1]],Z=i[Y.series[1]],W=(le._paths||Il).band;Ht(W)&&(W=Y.dir==1?W[0]:W[1]);let R,ge=null;le.show&&W&&vr(Z,Pe,De)?(ge=Y.fill(n,ie)||p,R=le._paths.clip):W=null,En(l,r,f,c,ge,S,_,v,b,M,R,W),E=true;}}),E||En(l,r,f,c,p,S,_,v,b,M);}const Ai=Al|ai;function En(t,l,r,f,c,p,S,_,v,b,M,E){ki(t,l,r,f,c),(v||b||E)&&(d.save(),v&&d.clip(v),b&&d.clip(b)),E?(_&Ai)==Ai?(d.clip(E),M&&d.clip(M),Zl(c,S),Jl(t,p,l)):_&ai?(Zl(c,S),d.clip(E),Jl(t,p,l)):_&Al&&(d.save(),d.clip(E),M&&d.clip(M),Zl(c,S),d.restore(),Jl(t,p,l)):(Zl(c,S),Jl(t,p,l)),(v||b||E)&&d.restore();}function Jl(t,l,r){r>0&&(l instanceof Map?l.forEach((f,c)=>{d.strokeStyle=$l=c,d.stroke(f);}):l!=null&&t&&d.stroke(l));}function Zl(t,l){l instanceof Map?l.forEach((r,f)=>{d.fillStyle=cl=f,d.fill(r);}):l!=null&&t&&d.fill(l);}function Cs(t,l,r,f){let c=H[t],p;if(f<=0)p=[0,0];else {let S=c._space=c.space(n,t,l,r,f),_=c._incrs=c.incrs(n,t,l,r,f,S);p=Yf(l,r,_,f,S);}return c._found=p}function Pn(t,l,r,f,c,p,S,_,v,b){let M=S%2/2;O==1&&d.translate(M,M),ki(_,S,v,b,_),d.beginPath();let E,Y,ie,le,Z=c+(f==0||f==3?-p:p);r==0?(Y=c,le=Z):(E=c,ie=Z);for(let W=0;W<t.length;W++)l[W]!=null&&(r==0?E=ie=t[W]:Y=le=t[W],d.moveTo(E,Y),d.lineTo(ie,le));d.stroke(),O==1&&d.translate(-M,-M);}function Vs(t){let l=true;return H.forEach((r,f)=>{if(!r.show)return;let c=x[r.scale];if(c.min==null){r._show&&(l=false,r._show=false,al(false));return}else r._show||(l=false,r._show=true,al(false));let p=r.side,S=p%2,{min:_,max:v}=c,[b,M]=Cs(f,_,v,S==0?K:A);if(M==0)return;let E=c.distr==2,Y=r._splits=r.splits(n,f,_,v,b,M,E),ie=c.distr==2?Y.map(R=>pt[R]):Y,le=c.distr==2?pt[Y[1]]-pt[Y[0]]:b,Z=r._values=r.values(n,r.filter(n,ie,f,M,le),f,M,le);r._rotate=p==2?r.rotate(n,Z,f,M):0;let W=r._size;r._size=ut(r.size(n,Z,f,t)),W!=null&&r._size!=W&&(l=false);}),l}function Rs(t){let l=true;return yi.forEach((r,f)=>{let c=r(n,f,Ut,t);c!=Ct[f]&&(l=false),Ct[f]=c;}),l}function zs(){for(let t=0;t<H.length;t++){let l=H[t];if(!l.show||!l._show)continue;let r=l.side,f=r%2,c,p,S=l.stroke(n,t),_=r==0||r==3?-1:1,[v,b]=l._found;if(l.label!=null){let Ie=l.labelGap*_,Qe=Ee((l._lpos+Ie)*oe);xi(l.labelFont[0],S,"center",r==2?"top":qi),d.save(),f==1?(c=p=0,d.translate(Qe,Ee(nt+at/2)),d.rotate((r==3?-rn:rn)/2)):(c=Ee($e+Ke/2),p=Qe);let qt=mo(l.label)?l.label(n,t,v,b):l.label;d.fillText(qt,c,p),d.restore();}if(b==0)continue;let M=x[l.scale],E=f==0?Ke:at,Y=f==0?$e:nt,ie=l._splits,le=M.distr==2?ie.map(Ie=>pt[Ie]):ie,Z=M.distr==2?pt[ie[1]]-pt[ie[0]]:v,W=l.ticks,R=l.border,ge=W.show?W.size:0,ve=Ee(ge*oe),Re=Ee((l.alignTo==2?l._size-ge-l.gap:l.gap)*oe),ue=l._rotate*-rn/180,ke=N(l._pos*oe),Je=(ve+Re)*_,Ge=ke+Je;p=f==0?Ge:0,c=f==1?Ge:0;let st=l.font[0],ht=l.align==1?yl:l.align==2?Wn:ue>0?yl:ue<0?Wn:f==0?"center":r==3?Wn:yl,xt=ue||f==1?"middle":r==2?"top":qi;xi(st,S,ht,xt);let Ze=l.font[1]*l.lineGap,rt=ie.map(Ie=>N(h(Ie,M,E,Y))),mt=l._values;for(let Ie=0;Ie<mt.length;Ie++){let Qe=mt[Ie];if(Qe!=null){f==0?c=rt[Ie]:p=rt[Ie],Qe=""+Qe;let qt=Qe.indexOf(`
`)==-1?[Qe]:Qe.split(/\n/gm);for(let Ye=0;Ye<qt.length;Ye++){let Ki=qt[Ye];ue?(d.save(),d.translate(c,p+Ye*Ze),d.rotate(ue),d.fillText(Ki,0,0),d.restore()):d.fillText(Ki,c,p+Ye*Ze);}}}W.show&&Pn(rt,W.filter(n,le,t,b,Z),f,r,ke,ve,ae(W.width*oe,3),W.stroke(n,t),W.dash,W.cap);let Tt=l.grid;Tt.show&&Pn(rt,Tt.filter(n,le,t,b,Z),f,f==0?2:1,f==0?nt:$e,f==0?at:Ke,ae(Tt.width*oe,3),Tt.stroke(n,t),Tt.dash,Tt.cap),R.show&&Pn([ke],[1],f==0?1:0,f==0?1:2,f==1?nt:$e,f==1?at:Ke,ae(R.width*oe,3),R.stroke(n,t),R.dash,R.cap);}Ve("drawAxes");}function al(t){k.forEach((l,r)=>{r>0&&(l._paths=null,t&&(s==1?(l.min=null,l.max=null):l.facets.forEach(f=>{f.min=null,f.max=null;})));});}let Ql=false,Dn=false,Vl=[];function Fs(){Dn=false;for(let t=0;t<Vl.length;t++)Ve(...Vl[t]);Vl.length=0;}function pl(){Ql||(zr(Ei),Ql=true);}function Os(t,l=false){Ql=true,Dn=l,t(n),Ei(),l&&Vl.length>0&&queueMicrotask(Fs);}n.batch=Os;function Ei(){if(wn&&(Es(),wn=false),ol&&(vs(),ol=false),Kl){if(de(L,yl,pe),de(L,"top",Me),de(L,Hl,K),de(L,Nl,A),de(D,yl,pe),de(D,"top",Me),de(D,Hl,K),de(D,Nl,A),de(w,Hl,At),de(w,Nl,Wt),y.width=Ee(At*oe),y.height=Ee(Wt*oe),H.forEach(({_el:t,_show:l,_size:r,_pos:f,side:c})=>{if(t!=null)if(l){let p=c===3||c===0?r:0,S=c%2==1;de(t,S?"left":"top",f-p),de(t,S?"width":"height",r),de(t,S?"top":"left",S?Me:pe),de(t,S?"height":"width",S?A:K),jn(t,$t);}else Xe(t,$t);}),$l=cl=yn=kn=xn=Tn=bn=Mn=vn=null,je=1,Fl(true),pe!=il||Me!=Gt||K!=_t||A!=It){al(false);let t=K/_t,l=A/It;if(Ne&&!Yt&&V.left>=0){V.left*=t,V.top*=l,hl&&bt(hl,Ee(V.left),0,K,A),ml&&bt(ml,0,Ee(V.top),K,A);for(let r=0;r<ot.length;r++){let f=ot[r];f!=null&&(fl[r]*=t,ul[r]*=l,bt(f,ut(fl[r]),ut(ul[r]),K,A));}}if(me.show&&!jl&&me.left>=0&&me.width>0){me.left*=t,me.width*=t,me.top*=l,me.height*=l;for(let r in Fn)de(wl,r,me[r]);}il=pe,Gt=Me,_t=K,It=A;}Ve("setSize"),Kl=false;}At>0&&Wt>0&&(d.clearRect(0,0,y.width,y.height),Ve("drawClear"),U.forEach(t=>t()),Ve("draw")),me.show&&jl&&(Xl(me),jl=false),Ne&&Yt&&(jt(null,true,false),Yt=false),J.show&&J.live&&it&&(Rn(),it=false),m||(m=true,n.status=1,Ve("ready")),Cl=false,Ql=false;}n.redraw=(t,l)=>{ol=l||false,t!==false?Rt(P,T.min,T.max):pl();};function Ln(t,l){let r=x[t];if(r.from==null){if(ze==0){let f=r.range(n,l.min,l.max,t);l.min=f[0],l.max=f[1];}if(l.min>l.max){let f=l.min;l.min=l.max,l.max=f;}if(ze>1&&l.min!=null&&l.max!=null&&l.max-l.min<1e-16)return;t==P&&r.distr==2&&ze>0&&(l.min=dt(l.min,i[0]),l.max=dt(l.max,i[0]),l.min==l.max&&l.max++),F[t]=l,wn=true,pl();}}n.setScale=Ln;let Cn,Vn,hl,ml,Pi,Di,gl,dl,Li,Ci,he,_e,Vt=false;const Fe=V.drag;let Le=Fe.x,Ce=Fe.y;Ne&&(V.x&&(Cn=ft(or,D)),V.y&&(Vn=ft(sr,D)),T.ori==0?(hl=Cn,ml=Vn):(hl=Vn,ml=Cn),he=V.left,_e=V.top);const me=n.select=Te({show:true,over:true,left:0,width:0,top:0,height:0},e.select),wl=me.show?ft(ir,me.over?D:L):null;function Xl(t,l){if(me.show){for(let r in t)me[r]=t[r],r in Fn&&de(wl,r,t[r]);l!==false&&Ve("setSelect");}}n.setSelect=Xl;function Hs(t){if(k[t].show)be&&jn(ye[t],$t);else if(be&&Xe(ye[t],$t),Ne){let r=rl?ot[0]:ot[t];r!=null&&bt(r,-10,-10,K,A);}}function Rt(t,l,r){Ln(t,{min:l,max:r});}function vt(t,l,r,f){l.focus!=null&&Ys(t),l.show!=null&&k.forEach((c,p)=>{p>0&&(t==p||t==null)&&(c.show=l.show,Hs(p),s==2?(Rt(c.facets[0].scale,null,null),Rt(c.facets[1].scale,null,null)):Rt(c.scale,null,null),pl());}),r!==false&&Ve("setSeries",t,l),f&&Ol("setSeries",n,t,l);}n.setSeries=vt;function Ns(t,l){Te(q[t],l);}function Ws(t,l){t.fill=X(t.fill||null),t.dir=ne(t.dir,-1),l=l??q.length,q.splice(l,0,t);}function Gs(t){t==null?q.length=0:q.splice(t,1);}n.addBand=Ws,n.setBand=Ns,n.delBand=Gs;function Is(t,l){k[t].alpha=l,Ne&&ot[t]!=null&&(ot[t].style.opacity=l),be&&ye[t]&&(ye[t].style.opacity=l);}let Et,zt,Kt;const Sl={focus:true};function Ys(t){if(t!=Kt){let l=t==null,r=yt.alpha!=1;k.forEach((f,c)=>{if(s==1||c>0){let p=l||c==0||c==t;f._focus=l?null:p,r&&Is(c,p?1:yt.alpha);}}),Kt=t,r&&pl();}}be&&sl&&We(Qi,se,t=>{V._lock||(Bt(t),Kt!=null&&vt(null,Sl,true,xe.setSeries));});function kt(t,l,r){let f=x[l];r&&(t=t/oe-(f.ori==1?Me:pe));let c=K;f.ori==1&&(c=A,t=c-t),f.dir==-1&&(t=c-t);let p=f._min,S=f._max,_=t/c,v=p+(S-p)*_,b=f.distr;return b==3?xl(10,v):b==4?xr(v,f.asinh):b==100?f.bwd(v):v}function Bs(t,l){let r=kt(t,P,l);return dt(r,i[0],Pe,De)}n.valToIdx=t=>dt(t,i[0]),n.posToIdx=Bs,n.posToVal=kt,n.valToPos=(t,l,r)=>x[l].ori==0?a(t,x[l],r?Ke:K,r?$e:0):u(t,x[l],r?at:A,r?nt:0),n.setCursor=(t,l,r)=>{he=t.left,_e=t.top,jt(null,l,r);};function Vi(t,l){de(wl,yl,me.left=t),de(wl,Hl,me.width=l);}function Ri(t,l){de(wl,"top",me.top=t),de(wl,Nl,me.height=l);}let Rl=T.ori==0?Vi:Ri,zl=T.ori==1?Vi:Ri;function Us(){if(be&&J.live)for(let t=s==2?1:0;t<k.length;t++){if(t==0&&lt)continue;let l=J.values[t],r=0;for(let f in l)St[t][r++].firstChild.nodeValue=l[f];}}function Rn(t,l){if(t!=null&&(t.idxs?t.idxs.forEach((r,f)=>{fe[f]=r;}):Ar(t.idx)||fe.fill(t.idx),J.idx=fe[0]),be&&J.live){for(let r=0;r<k.length;r++)(r>0||s==1&&!lt)&&Ks(r,fe[r]);Us();}it=false,l!==false&&Ve("setLegend");}n.setLegend=Rn;function Ks(t,l){let r=k[t],f=t==0&&j==2?pt:i[t],c;lt?c=r.values(n,t,l)??Lt:(c=r.value(n,l==null?null:f[l],t,l),c=c==null?Lt:{_:c}),J.values[t]=c;}function jt(t,l,r){Li=he,Ci=_e,[he,_e]=V.move(n,he,_e),V.left=he,V.top=_e,Ne&&(hl&&bt(hl,Ee(he),0,K,A),ml&&bt(ml,0,Ee(_e),K,A));let f,c=Pe>De;Et=ce,zt=null;let p=T.ori==0?K:A,S=T.ori==1?K:A;if(he<0||ze==0||c){f=V.idx=null;for(let _=0;_<k.length;_++){let v=ot[_];v!=null&&bt(v,-10,-10,K,A);}sl&&vt(null,Sl,true,t==null&&xe.setSeries),J.live&&(fe.fill(f),it=true);}else {let _,v,b;s==1&&(_=T.ori==0?he:_e,v=kt(_,P),f=V.idx=dt(v,i[0],Pe,De),b=C(i[0][f],T,p,0));let M=-10,E=-10,Y=0,ie=0,le=true,Z="",W="";for(let R=s==2?1:0;R<k.length;R++){let ge=k[R],ve=fe[R],Re=ve==null?null:s==1?i[R][ve]:i[R][1][ve],ue=V.dataIdx(n,R,f,v),ke=ue==null?null:s==1?i[R][ue]:i[R][1][ue];if(it=it||ke!=Re||ue!=ve,fe[R]=ue,R>0&&ge.show){let Je=ue==null?-10:ue==f?b:C(s==1?i[0][ue]:i[R][0][ue],T,p,0),Ge=ke==null?-10:I(ke,s==1?x[ge.scale]:x[ge.facets[1].scale],S,0);if(sl&&ke!=null){let st=T.ori==1?he:_e,ht=Ae(yt.dist(n,R,ue,Ge,st));if(ht<Et){let xt=yt.bias;if(xt!=0){let Ze=kt(st,ge.scale),rt=ke>=0?1:-1,mt=Ze>=0?1:-1;mt==rt&&(mt==1?xt==1?ke>=Ze:ke<=Ze:xt==1?ke<=Ze:ke>=Ze)&&(Et=ht,zt=R);}else Et=ht,zt=R;}}if(it||rl){let st,ht;T.ori==0?(st=Je,ht=Ge):(st=Ge,ht=Je);let xt,Ze,rt,mt,Tt,Ie,Qe=true,qt=Oe.bbox;if(qt!=null){Qe=false;let Ye=qt(n,R);rt=Ye.left,mt=Ye.top,xt=Ye.width,Ze=Ye.height;}else rt=st,mt=ht,xt=Ze=Oe.size(n,R);if(Ie=Oe.fill(n,R),Tt=Oe.stroke(n,R),rl)R==zt&&Et<=yt.prox&&(M=rt,E=mt,Y=xt,ie=Ze,le=Qe,Z=Ie,W=Tt);else {let Ye=ot[R];Ye!=null&&(fl[R]=rt,ul[R]=mt,oo(Ye,xt,Ze,Qe),no(Ye,Ie,Tt),bt(Ye,ut(rt),ut(mt),K,A));}}}}if(rl){let R=yt.prox,ge=Kt==null?Et<=R:Et>R||zt!=Kt;if(it||ge){let ve=ot[0];ve!=null&&(fl[0]=M,ul[0]=E,oo(ve,Y,ie,le),no(ve,Z,W),bt(ve,ut(M),ut(E),K,A));}}}if(me.show&&Vt)if(t!=null){let[_,v]=xe.scales,[b,M]=xe.match,[E,Y]=t.cursor.sync.scales,ie=t.cursor.drag;if(Le=ie._x,Ce=ie._y,Le||Ce){let{left:le,top:Z,width:W,height:R}=t.select,ge=t.scales[E].ori,ve=t.posToVal,Re,ue,ke,Je,Ge,st=_!=null&&b(_,E),ht=v!=null&&M(v,Y);st&&Le?(ge==0?(Re=le,ue=W):(Re=Z,ue=R),ke=x[_],Je=C(ve(Re,E),ke,p,0),Ge=C(ve(Re+ue,E),ke,p,0),Rl(wt(Je,Ge),Ae(Ge-Je))):Rl(0,p),ht&&Ce?(ge==1?(Re=le,ue=W):(Re=Z,ue=R),ke=x[v],Je=I(ve(Re,Y),ke,S,0),Ge=I(ve(Re+ue,Y),ke,S,0),zl(wt(Je,Ge),Ae(Ge-Je))):zl(0,S);}else On();}else {let _=Ae(Li-Pi),v=Ae(Ci-Di);if(T.ori==1){let Y=_;_=v,v=Y;}Le=Fe.x&&_>=Fe.dist,Ce=Fe.y&&v>=Fe.dist;let b=Fe.uni;b!=null?Le&&Ce&&(Le=_>=b,Ce=v>=b,!Le&&!Ce&&(v>_?Ce=true:Le=true)):Fe.x&&Fe.y&&(Le||Ce)&&(Le=Ce=true);let M,E;Le&&(T.ori==0?(M=gl,E=he):(M=dl,E=_e),Rl(wt(M,E),Ae(E-M)),Ce||zl(0,S)),Ce&&(T.ori==1?(M=gl,E=he):(M=dl,E=_e),zl(wt(M,E),Ae(E-M)),Le||Rl(0,p)),!Le&&!Ce&&(Rl(0,0),zl(0,0));}if(Fe._x=Le,Fe._y=Ce,t==null){if(r){if(Ui!=null){let[_,v]=xe.scales;xe.values[0]=_!=null?kt(T.ori==0?he:_e,_):null,xe.values[1]=v!=null?kt(T.ori==1?he:_e,v):null;}Ol(In,n,he,_e,K,A,f);}if(sl){let _=r&&xe.setSeries,v=yt.prox;Kt==null?Et<=v&&vt(zt,Sl,true,_):Et>v?vt(null,Sl,true,_):zt!=Kt&&vt(zt,Sl,true,_);}}it&&(J.idx=f,Rn()),l!==false&&Ve("setCursor");}let Ft=null;Object.defineProperty(n,"rect",{get(){return Ft==null&&Fl(false),Ft}});function Fl(t=false){t?Ft=null:(Ft=D.getBoundingClientRect(),Ve("syncRect",Ft));}function zi(t,l,r,f,c,p,S){V._lock||Vt&&t!=null&&t.movementX==0&&t.movementY==0||(zn(t,l,r,f,c,p,S,false,t!=null),t!=null?jt(null,true,true):jt(l,true,false));}function zn(t,l,r,f,c,p,S,_,v){if(Ft==null&&Fl(false),Bt(t),t!=null)r=t.clientX-Ft.left,f=t.clientY-Ft.top;else {if(r<0||f<0){he=-10,_e=-10;return}let[b,M]=xe.scales,E=l.cursor.sync,[Y,ie]=E.values,[le,Z]=E.scales,[W,R]=xe.match,ge=l.axes[0].side%2==1,ve=T.ori==0?K:A,Re=T.ori==1?K:A,ue=ge?p:c,ke=ge?c:p,Je=ge?f:r,Ge=ge?r:f;if(le!=null?r=W(b,le)?h(Y,x[b],ve,0):-10:r=ve*(Je/ue),Z!=null?f=R(M,Z)?h(ie,x[M],Re,0):-10:f=Re*(Ge/ke),T.ori==1){let st=r;r=f,f=st;}}v&&(l==null||l.cursor.event.type==In)&&((r<=1||r>=K-1)&&(r=Qt(r,K)),(f<=1||f>=A-1)&&(f=Qt(f,A))),_?(Pi=r,Di=f,[gl,dl]=V.move(n,r,f)):(he=r,_e=f);}const Fn={width:0,height:0,left:0,top:0};function On(){Xl(Fn,false);}let Fi,Oi,Hi,Ni;function Wi(t,l,r,f,c,p,S){Vt=true,Le=Ce=Fe._x=Fe._y=false,zn(t,l,r,f,c,p,S,true,false),t!=null&&(We(Yn,Un,Gi,false),Ol(Ji,n,gl,dl,K,A,null));let{left:_,top:v,width:b,height:M}=me;Fi=_,Oi=v,Hi=b,Ni=M;}function Gi(t,l,r,f,c,p,S){Vt=Fe._x=Fe._y=false,zn(t,l,r,f,c,p,S,false,true);let{left:_,top:v,width:b,height:M}=me,E=b>0||M>0,Y=Fi!=_||Oi!=v||Hi!=b||Ni!=M;if(E&&Y&&Xl(me),Fe.setScale&&E&&Y){let ie=_,le=b,Z=v,W=M;if(T.ori==1&&(ie=v,le=M,Z=_,W=b),Le&&Rt(P,kt(ie,P),kt(ie+le,P)),Ce)for(let R in x){let ge=x[R];R!=P&&ge.from==null&&ge.min!=ce&&Rt(R,kt(Z+W,R),kt(Z,R));}On();}else V.lock&&(V._lock=!V._lock,jt(l,true,t!=null));t!=null&&(nl(Yn,Un),Ol(Yn,n,he,_e,K,A,null));}function js(t,l,r,f,c,p,S){if(V._lock)return;Bt(t);let _=Vt;if(Vt){let v=true,b=true,M=10,E,Y;T.ori==0?(E=Le,Y=Ce):(E=Ce,Y=Le),E&&Y&&(v=he<=M||he>=K-M,b=_e<=M||_e>=A-M),E&&v&&(he=he<gl?0:K),Y&&b&&(_e=_e<dl?0:A),jt(null,true,true),Vt=false;}he=-10,_e=-10,fe.fill(null),jt(null,true,true),_&&(Vt=_);}function Ii(t,l,r,f,c,p,S){V._lock||(Bt(t),_n(),On(),t!=null&&Ol(Xi,n,he,_e,K,A,null));}function Yi(){H.forEach(Bf),Sn(n.width,n.height,true);}Jt(tn,kl,Yi);const _l={};_l.mousedown=Wi,_l.mousemove=zi,_l.mouseup=Gi,_l.dblclick=Ii,_l.setSeries=(t,l,r,f)=>{let c=xe.match[2];r=c(n,l,r),r!=-1&&vt(r,f,true,false);},Ne&&(We(Ji,D,Wi),We(In,D,zi),We(Zi,D,t=>{Bt(t),Fl(false);}),We(Qi,D,js),We(Xi,D,Ii),gi.add(n),n.syncRect=Fl);const en=n.hooks=e.hooks||{};function Ve(t,l,r){Dn?Vl.push([t,l,r]):t in en&&en[t].forEach(f=>{f.call(null,n,l,r);});}(e.plugins||[]).forEach(t=>{for(let l in t.hooks)en[l]=(en[l]||[]).concat(t.hooks[l]);});const Bi=(t,l,r)=>r,xe=Te({key:null,setSeries:false,filters:{pub:So,sub:So},scales:[P,k[1]?k[1].scale:null],match:[_o,_o,Bi],values:[null,null]},V.sync);xe.match.length==2&&xe.match.push(Bi),V.sync=xe;const Ui=xe.key,Hn=ns(Ui);function Ol(t,l,r,f,c,p,S){xe.filters.pub(t,l,r,f,c,p,S)&&Hn.pub(t,l,r,f,c,p,S);}Hn.sub(n);function qs(t,l,r,f,c,p,S){xe.filters.sub(t,l,r,f,c,p,S)&&_l[t](null,l,r,f,c,p,S);}n.pub=qs;function $s(){Hn.unsub(n),gi.delete(n),Nt.clear(),$n(tn,kl,Yi),g.remove(),se?.remove(),Ve("destroy");}n.destroy=$s;function Nn(){Ve("init",e,i),vi(i||e.data,false),F[P]?Ln(P,F[P]):_n(),jl=me.show&&(me.width>0||me.height>0),Yt=it=true,Sn(e.width,e.height);}return k.forEach(_i),H.forEach(As),o?o instanceof HTMLElement?(o.appendChild(g),Nn()):o(n,Nn):Nn(),n}He.assign=Te,He.fmtNum=Qn,He.rangeNum=sn,He.rangeLog=on,He.rangeAsinh=Jn,He.orient=el,He.pxRatio=oe,He.join=Rr,He.fmtDate=li,He.tzDate=Ur,He.sync=ns;{He.addGap=Ef,He.clipGaps=hn;let e=He.paths={points:cs};e.linear=ps,e.stepped=Lf,e.bars=Cf,e.spline=Rf;}

const HEIGHT = 180;
const DOTS_MAX = 60;
const time = new Intl.DateTimeFormat(void 0, { hour: "2-digit", minute: "2-digit", hour12: false });
function Chart({ title, times, lines, say, atLeast }) {
  const place = T(null);
  const plot = T(void 0);
  const shades = useSignal(colours);
  const [at, setAt] = d();
  const data = [times.map((at2) => Date.parse(at2) / 1e3), ...lines.map((line) => line.values)];
  const latest = T({ data, say });
  latest.current = { data, say };
  const shape = `${times.length} ${lines.map((line) => line.label).join()} ${shades}`;
  A(() => {
    const box = place.current;
    const drawn = new He(options(box.clientWidth, lines, atLeast, (value) => latest.current.say(value), setAt), latest.current.data, box);
    plot.current = drawn;
    const resized = new ResizeObserver(() => drawn.setSize({ width: box.clientWidth, height: HEIGHT }));
    resized.observe(box);
    return () => {
      resized.disconnect();
      drawn.destroy();
      plot.current = void 0;
    };
  }, [shape]);
  A(() => plot.current?.setData(data), [times, lines]);
  const told = at !== void 0 && at < times.length ? at : void 0;
  return /* @__PURE__ */ a$1("figure", { class: "chart", children: [
    /* @__PURE__ */ a$1("figcaption", { children: [
      /* @__PURE__ */ a$1("strong", { children: title }),
      lines.map((line) => /* @__PURE__ */ a$1("span", { class: "chart-line", children: [
        /* @__PURE__ */ a$1("svg", { width: "22", height: "8", "aria-hidden": "true", children: /* @__PURE__ */ a$1("line", { x1: "0", y1: "4", x2: "22", y2: "4", stroke: `var(${line.colour})`, "stroke-width": "2.5", "stroke-dasharray": line.dash?.join(" ") }) }),
        " ",
        line.label,
        told !== void 0 && line.values[told] != null && /* @__PURE__ */ a$1("b", { children: [
          " ",
          say(line.values[told])
        ] })
      ] }, line.label)),
      told !== void 0 && /* @__PURE__ */ a$1("span", { class: "quiet", children: time.format(new Date(times[told])) })
    ] }),
    /* @__PURE__ */ a$1("div", { class: "chart-plot", ref: place, "aria-hidden": "true" }),
    /* @__PURE__ */ a$1("details", { children: [
      /* @__PURE__ */ a$1("summary", { children: "As a table" }),
      /* @__PURE__ */ a$1("div", { class: "chart-table", tabIndex: 0, role: "region", "aria-label": `${title}, as a table`, children: /* @__PURE__ */ a$1("table", { class: "rows plain", children: [
        /* @__PURE__ */ a$1("caption", { class: "hidden", children: title }),
        /* @__PURE__ */ a$1("thead", { children: /* @__PURE__ */ a$1("tr", { children: [
          /* @__PURE__ */ a$1("th", { scope: "col", children: "From" }),
          lines.map((line) => /* @__PURE__ */ a$1("th", { scope: "col", children: line.label }, line.label))
        ] }) }),
        /* @__PURE__ */ a$1("tbody", { children: times.map((at2, step) => /* @__PURE__ */ a$1("tr", { children: [
          /* @__PURE__ */ a$1("th", { scope: "row", children: time.format(new Date(at2)) }),
          lines.map((line) => /* @__PURE__ */ a$1("td", { children: line.values[step] == null ? "–" : say(line.values[step]) }, line.label))
        ] }, at2)).reverse() })
      ] }) })
    ] })
  ] });
}
function options(width, lines, atLeast, say, told) {
  const [text, rule] = [colour("--quiet"), colour("--line")];
  const axis = { stroke: text, grid: { stroke: rule, width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    padding: [10, 6, 0, 0],
    cursor: { y: false, drag: { setScale: false, x: false, y: false }, points: { size: 7 } },
    scales: { x: { time: true }, y: { range: (_plot, _min, max) => [0, Math.max(max ?? 0, atLeast) * 1.08] } },
    axes: [
      { ...axis, size: 28, values: (_plot, splits) => splits.map((split) => time.format(new Date(split * 1e3))) },
      { ...axis, size: 62, values: (_plot, splits) => splits.map(say) }
    ],
    series: [
      {},
      ...lines.map((line) => ({
        label: line.label,
        stroke: colour(line.colour),
        width: 2,
        ...line.dash && { dash: line.dash },
        points: { show: true, size: 5, fill: colour(line.colour), filter: (plot, at) => dots(plot.data[at]) }
      }))
    ],
    hooks: { setCursor: [(plot) => told(plot.cursor.idx ?? void 0)] }
  };
}
function dots(values) {
  const alone = (at) => values[at - 1] == null && values[at + 1] == null;
  return values.flatMap((value, at) => value != null && (values.length <= DOTS_MAX || alone(at)) ? [at] : []);
}

const EVERY_MS$1 = 3e3;
const RANGES = [
  ["15m", "15 minutes", 15 * 6e4],
  ["1h", "1 hour", 36e5],
  ["24h", "24 hours", 864e5]
];
function Overview() {
  const { query } = useSignal(route);
  const [range, words, spanMs] = RANGES.find(([name]) => name === query.get("range")) ?? RANGES[0];
  const totals = useLoad("totals", (signal) => get("/api/v1/totals", signal), EVERY_MS$1);
  const series = useLoad(range, (signal) => get(`/api/v1/series?range=${range}`, signal), EVERY_MS$1);
  return /* @__PURE__ */ a$1($, { children: [
    /* @__PURE__ */ a$1("header", { class: "view-head", children: [
      /* @__PURE__ */ a$1("h1", { children: "Overview" }),
      /* @__PURE__ */ a$1("div", { class: "ranges", role: "group", "aria-label": "How far back", children: RANGES.map(([name, text]) => /* @__PURE__ */ a$1("button", { "aria-pressed": name === range, onClick: () => setQuery(new URLSearchParams({ range: name })), children: text }, name)) }),
      series.data && !series.problem && /* @__PURE__ */ a$1("span", { class: "tail tail-on", children: "live" })
    ] }),
    /* @__PURE__ */ a$1("section", { "aria-labelledby": "now", children: [
      /* @__PURE__ */ a$1("h2", { id: "now", children: "Now" }),
      /* @__PURE__ */ a$1(Shown, { of: totals, children: (data) => /* @__PURE__ */ a$1(Now, { totals: data }) })
    ] }),
    /* @__PURE__ */ a$1("section", { "aria-labelledby": "lately", children: [
      /* @__PURE__ */ a$1("h2", { id: "lately", children: [
        "In the last ",
        words
      ] }),
      /* @__PURE__ */ a$1(Shown, { of: series, children: (data) => /* @__PURE__ */ a$1($, { children: [
        /* @__PURE__ */ a$1(Lately, { sum: data.sum, range, spanMs }),
        happened(data.sum) ? /* @__PURE__ */ a$1(Charts, { series: data }) : /* @__PURE__ */ a$1(Empty, { children: [
          "No call in the last ",
          words,
          ". What happens next shows up here by itself."
        ] })
      ] }) })
    ] })
  ] });
}
function Now({ totals }) {
  const { executions, queue, workers } = totals;
  const stalled = queue.depth > 0 && workers.running === 0;
  return /* @__PURE__ */ a$1("dl", { class: "cards", children: [
    /* @__PURE__ */ a$1(Card, { label: "Running", to: calls("leased"), value: executions.leased }),
    /* @__PURE__ */ a$1(Card, { label: "In the queue", to: calls("ready,scheduled"), value: queue.depth, warn: stalled, children: queue.oldest_age_ms == null ? "none waits" : `the oldest for ${duration(queue.oldest_age_ms)}` }),
    /* @__PURE__ */ a$1(Card, { label: "Waiting for input", to: calls("waiting"), value: executions.waiting }),
    /* @__PURE__ */ a$1(Card, { label: "Outcome unknown", to: href("attention"), value: executions.unknown, warn: executions.unknown > 0, children: executions.unknown ? "needs a decision" : "none is open" }),
    /* @__PURE__ */ a$1(Card, { label: "Workers", to: href("workers"), value: workers.running, warn: workers.running === 0, children: [workers.draining && `${workers.draining} draining`, workers.gone && `${workers.gone} gone today`].filter(Boolean).join(", ") || "all well" }),
    /* @__PURE__ */ a$1(Card, { label: "Stored calls", to: href("executions"), value: executions.all, children: `${executions.completed.toLocaleString()} completed` })
  ] });
}
function Lately({ sum, range, spanMs }) {
  const ended = sum.completed + sum.failed + sum.cancelled;
  const within = (more) => href("executions", void 0, new URLSearchParams({ ...more, within: range }));
  const { latency } = sum;
  return /* @__PURE__ */ a$1("dl", { class: "cards cards-four", children: [
    /* @__PURE__ */ a$1(Card, { label: "Calls that ended", to: within({ state: "completed,failed,cancelled" }), value: ended, children: `${rate(ended, spanMs)}, ${count(sum.submitted, "call")} came in` }),
    /* @__PURE__ */ a$1(Card, { label: "Latency, the median", text: latency ? duration(latency.p50_ms) : "–", children: latency ? `p95 ${duration(latency.p95_ms)}, p99 ${duration(latency.p99_ms)}` : "no result yet" }),
    /* @__PURE__ */ a$1(Card, { label: "Failed", to: within({ state: "failed" }), value: sum.failed, bad: sum.failed > 0, children: `${count(sum.tool_errors, "tool error")} besides` }),
    /* @__PURE__ */ a$1(Card, { label: "Attempts lost", to: within({ attempts_over: "1" }), value: sum.lost, warn: sum.lost > 0, children: sum.crash_rate == null ? "none was started" : `crash rate ${percent(sum.crash_rate)} of ${count(sum.attempts, "attempt")}` }),
    /* @__PURE__ */ a$1(Card, { label: "Recovered", to: within({ recovered: "true" }), value: sum.recovered, children: "completed after a loss" }),
    /* @__PURE__ */ a$1(Card, { label: "Became unknown", to: within({ state: "unknown" }), value: sum.unknown, warn: sum.unknown > 0, children: "and were not run again" }),
    /* @__PURE__ */ a$1(Card, { label: "Stale writes rejected", value: sum.stale_writes, children: "changed nothing" }),
    /* @__PURE__ */ a$1(Card, { label: "Duplicates answered", value: sum.repeats, children: sum.conflicts ? `${count(sum.conflicts, "conflict")} refused` : "without running again" })
  ] });
}
function Card({ label, value, text, to, warn, bad, children }) {
  const shown = text ?? value?.toLocaleString();
  return /* @__PURE__ */ a$1("div", { class: `card ${bad ? "card-bad" : warn ? "card-warn" : ""}`, children: [
    /* @__PURE__ */ a$1("dt", { children: label }),
    /* @__PURE__ */ a$1("dd", { children: [
      /* @__PURE__ */ a$1("span", { class: "card-number", children: to ? /* @__PURE__ */ a$1("a", { href: to, "aria-label": `${label}: ${shown}`, children: shown }) : shown }),
      children && /* @__PURE__ */ a$1("span", { class: "quiet", children })
    ] })
  ] });
}
function Charts({ series }) {
  const times = series.steps.map((step) => step.at);
  const of = (pick) => series.steps.map(({ numbers }) => pick(numbers) ?? null);
  const each = series.step_ms >= 6e5 ? "ten minutes" : "minute";
  const line = (label, colour, values, dash) => ({ label, colour, values, ...dash && { dash } });
  return /* @__PURE__ */ a$1("div", { class: "charts", children: [
    /* @__PURE__ */ a$1(
      Chart,
      {
        title: `Calls that ended, each ${each}`,
        times,
        say: whole,
        atLeast: 4,
        lines: [
          line("completed", "--good", of((numbers) => numbers.completed)),
          line("failed", "--bad", of((numbers) => numbers.failed), [6, 4]),
          line("cancelled", "--quiet", of((numbers) => numbers.cancelled), [2, 4])
        ]
      }
    ),
    /* @__PURE__ */ a$1(
      Chart,
      {
        title: "Latency of completed calls",
        times,
        say: duration,
        atLeast: 10,
        lines: [
          line("p50", "--accent", of((numbers) => numbers.latency?.p50_ms)),
          line("p95", "--warn", of((numbers) => numbers.latency?.p95_ms), [6, 4]),
          line("p99", "--bad", of((numbers) => numbers.latency?.p99_ms), [2, 4])
        ]
      }
    ),
    /* @__PURE__ */ a$1(
      Chart,
      {
        title: `Losses and recoveries, each ${each}`,
        times,
        say: whole,
        atLeast: 4,
        lines: [
          line("attempts lost", "--bad", of((numbers) => numbers.lost)),
          line("recovered", "--good", of((numbers) => numbers.recovered), [6, 4]),
          line("became unknown", "--warn", of((numbers) => numbers.unknown), [2, 4])
        ]
      }
    ),
    /* @__PURE__ */ a$1(
      Chart,
      {
        title: `Refused and answered again, each ${each}`,
        times,
        say: whole,
        atLeast: 4,
        lines: [
          line("duplicates answered", "--accent", of((numbers) => numbers.repeats)),
          line("stale writes", "--warn", of((numbers) => numbers.stale_writes), [6, 4]),
          line("conflicts", "--bad", of((numbers) => numbers.conflicts), [2, 4])
        ]
      }
    ),
    /* @__PURE__ */ a$1("p", { class: "quiet", children: [
      "Counted from the log of events; latencies are at most 3.2 % off. As of ",
      /* @__PURE__ */ a$1("time", { dateTime: series.at, children: moment(series.at) }),
      "; the last step goes on."
    ] })
  ] });
}
const calls = (state) => href("executions", void 0, new URLSearchParams({ state }));
const whole = (value) => Number.isInteger(value) ? value.toLocaleString() : "";
const percent = (share) => `${(share * 100).toLocaleString(void 0, { maximumFractionDigits: share < 0.01 ? 2 : 1 })} %`;
function rate(number, spanMs) {
  const perSecond = number * 1e3 / spanMs;
  const say = (value) => value.toLocaleString(void 0, { maximumFractionDigits: value < 10 ? 1 : 0 });
  return perSecond >= 1 ? `${say(perSecond)} a second` : `${say(perSecond * 60)} a minute`;
}
function happened(sum) {
  return Object.values(sum).some((value) => typeof value === "number" && value > 0);
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
      tool.definition && /* @__PURE__ */ a$1(Payload, { name: "Its definition", first: { text: JSON.stringify(tool.definition), pieces: 1 } })
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
        /* @__PURE__ */ a$1("td", { "data-label": "Calls", children: /* @__PURE__ */ a$1("span", { children: [
          /* @__PURE__ */ a$1("meter", { min: 0, max: worker.slots, value: worker.leased, "aria-label": "Slots in use" }),
          " ",
          worker.leased,
          " of ",
          worker.slots
        ] }) }),
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
  ["overview", "Overview"],
  ["executions", "Executions"],
  ["attention", "Needs attention"],
  ["workers", "Workers"],
  ["tools", "Tools"],
  ["sessions", "Sessions"],
  ["connect", "Connect"]
];
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
    case "overview":
      return /* @__PURE__ */ a$1(Overview, {});
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
        /* @__PURE__ */ a$1("a", { href: href("overview"), children: "Overview" })
      ] });
  }
}
function Top({ view }) {
  const shown = useSignal(theme);
  return /* @__PURE__ */ a$1("header", { class: "top", children: [
    /* @__PURE__ */ a$1("button", { class: "skip", onClick: () => document.querySelector("main")?.focus(), children: "To the content" }),
    /* @__PURE__ */ a$1("a", { class: "brand", href: href("overview"), children: [
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
