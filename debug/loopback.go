package debug

import (
	"fmt"
	"net"
	"net/http"
	"strings"
)

// LoopbackOnly wraps the handler of a server on a loopback address. Requests whose Host header is
// localhost or a loopback address, with any port, are passed on to next. All others are rejected
// with 403 (Forbidden). This prevents DNS rebinding, where a web site resolves its own name to a
// loopback address so that it can read the page with a visitor's browser.
//
// There are no other checks. In particular, a proxy on this machine can still forward requests with
// such a Host header.
func LoopbackOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isLoopback(r.Host) {
			http.Error(w, fmt.Sprintf("host %.100q given, want localhost or a loopback address", r.Host), http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func isLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}
