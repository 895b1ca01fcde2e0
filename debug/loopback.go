package debug

import (
	"fmt"
	"net"
	"net/http"
	"strings"
)

// LoopbackOnly returns a handler for a listener on loopback, which nobody else reaches but the
// browsers on this machine. It answers requests whose Host is localhost or a loopback address,
// with any port, and refuses others with 403: a site may let a name of its own point to
// loopback, and read what is there by its visitors' browsers (DNS rebinding).
//
// It looks at nothing else. Whoever is on this machine is let in, and so is all that a proxy
// on it passes on with such a Host.
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
