package debug

import (
	"fmt"
	"net"
	"net/http"
	"strings"
)

// LoopbackOnly returns a handler for a listener on a loopback address. It serves requests whose
// Host header is localhost or a loopback address, with any port. It rejects other requests with 403
// (Forbidden), to prevent DNS rebinding: a web site can resolve its own name to a loopback address,
// and then read the page with a visitor's browser.
//
// The handler makes no other checks. In particular, it accepts requests that a proxy on this
// machine forwards with such a Host header.
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
