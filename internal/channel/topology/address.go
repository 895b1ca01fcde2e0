package topology

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// CanonicalAddress returns the canonical form of an address (host:port or unix:/path), so that two
// spellings of an address compare equal. If the address is invalid, problem says why.
func CanonicalAddress(address string) (canonical, problem string) {
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		if path == "" {
			return "", "address \"unix:\" has no path"
		}
		return address, ""
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", fmt.Sprintf("address %.100q given, want host:port, or unix:/path", address)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", fmt.Sprintf("address %.100q has the port %.20q, want 1 to 65535", address, port)
	}
	if host, problem = CanonicalHost(host); problem != "" {
		return "", problem
	}
	return net.JoinHostPort(host, port), ""
}

// CanonicalHost returns the canonical form of a host. For instance, it shortens IPv6 addresses. If
// the host is invalid, problem says why.
func CanonicalHost(host string) (canonical, problem string) {
	if host == "" {
		return "", "address is empty, want an IP address or a host name"
	}
	if strings.Contains(host, ":") {
		ip, err := netip.ParseAddr(host)
		if err != nil {
			return "", fmt.Sprintf("address %.100q is neither a host name nor an IP address (the port goes into port_value, IPv6 has no brackets)", host)
		}
		return ip.String(), ""
	}
	if strings.Contains(host, ".") && strings.Trim(host, "0123456789.") == "" {
		if _, err := netip.ParseAddr(host); err != nil { // some resolvers would accept other forms, e.g. 10.1
			return "", fmt.Sprintf("address %.100q is not an IPv4 address, want four numbers from 0 to 255 without leading zeros", host)
		}
		return host, ""
	}
	isNotAllowed := func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune(`/\@?#,;[]"'<>{}|`, r) }
	if i := strings.IndexFunc(host, isNotAllowed); i >= 0 {
		return "", fmt.Sprintf("address %.100q has %q, which is not allowed in a host name", host, host[i:i+1])
	}
	return host, nameProblem(strings.TrimSuffix(host, "."))
}

// nameProblem applies the limits of RFC 1035, section 2.3.4. The trailing dot must be gone already.
func nameProblem(host string) string {
	const maxName, maxLabel = 253, 63
	if len(host) > maxName {
		return fmt.Sprintf("address has %d bytes, want at most %d", len(host), maxName)
	}
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || len(label) > maxLabel {
			return fmt.Sprintf("address %.100q has a label of %d bytes, want 1 to %d", host, len(label), maxLabel)
		}
	}
	return ""
}
