package xnet

import (
	"net"
	"regexp"
	"strconv"
	"strings"
)

// IsHostList reports whether target is a list of host:port, with numeric ports and possibly a
// query.
func IsHostList(target string) bool {
	hosts, _, _ := strings.Cut(target, "?")
	for entry := range strings.SplitSeq(hosts, ",") {
		host, port, err := net.SplitHostPort(entry)
		if err != nil || host == "" || strings.ContainsAny(host, "/@# ") {
			return false
		}
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return false
		}
	}
	return true
}

var zonePattern = regexp.MustCompile(`\[([0-9A-Fa-f.]*:[0-9A-Fa-f:.]*)%(?:25)?([^\]]+)\]`)

// EscapeZones escapes the zones of IPv6 addresses for use in URLs (RFC 6874), e.g. [fe80::1%eth0]
// becomes [fe80::1%25eth0]. It doesn't escape them twice.
func EscapeZones(text string) string { return zonePattern.ReplaceAllString(text, "[$1%25$2]") }
