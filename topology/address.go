package topology

import (
	"fmt"
	"math"
	"net"
	"net/netip"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// flaw is one thing that is wrong with an address. field is the field at fault, "" for
// the whole.
type flaw struct{ field, text string }

// dialable returns address in the form that gRPC dials, or what is wrong with it.
//
//	socket_address 192.0.2.1, 80  ->  192.0.2.1:80
//	socket_address 2001:db8::1, 80  ->  [2001:db8::1]:80
//	pipe /run/backend.sock  ->  unix:/run/backend.sock
func dialable(address *corev3.Address) (dial string, wrong []flaw) {
	switch a := address.GetAddress().(type) {
	case *corev3.Address_SocketAddress:
		return dialableSocket(a.SocketAddress)
	case *corev3.Address_Pipe:
		if a.Pipe.GetPath() == "" {
			return "", []flaw{{"pipe.path", "path is empty"}}
		}
		return "unix:" + a.Pipe.GetPath(), nil
	case *corev3.Address_EnvoyInternalAddress:
		return "", []flaw{{"", "envoy_internal_address is not supported, want socket_address or pipe"}}
	}
	if address == nil {
		return "", []flaw{{"", "address is missing"}}
	}
	return "", []flaw{{"", "neither socket_address nor pipe is given"}}
}

// Dial returns address in the form that gRPC dials, such as "192.0.2.1:443", "" where it
// has none. Equal addresses have equal forms.
func Dial(address *corev3.Address) string {
	dial, _ := dialable(address)
	return dial
}

func dialableSocket(socket *corev3.SocketAddress) (dial string, wrong []flaw) {
	host, problem := canonicalHost(socket.GetAddress())
	if problem != "" {
		wrong = append(wrong, flaw{"socket_address.address", problem})
	}
	port := socket.GetPortValue()
	switch socket.GetPortSpecifier().(type) {
	case *corev3.SocketAddress_PortValue:
		if port == 0 || port > math.MaxUint16 {
			wrong = append(wrong, flaw{"socket_address.port_value", fmt.Sprintf("port_value is %d, want 1 to 65535", port)})
		}
	case *corev3.SocketAddress_NamedPort:
		wrong = append(wrong, flaw{"socket_address.named_port", "named_port is not supported, want port_value"})
	default:
		wrong = append(wrong, flaw{"socket_address", "port_value is missing"})
	}
	if wrong != nil {
		return "", wrong
	}
	return net.JoinHostPort(host, strconv.FormatUint(uint64(port), 10)), nil
}

// canonicalHost returns host, or what is wrong with it. An IPv6 address gets its
// shortest form, so that equal addresses are equal text.
func canonicalHost(host string) (canonical, problem string) {
	if host == "" {
		return "", "address is empty, want an IP address or a host name"
	}
	if strings.Contains(host, ":") {
		ip, err := netip.ParseAddr(host)
		if err != nil {
			return "", fmt.Sprintf("address %q is neither a host name nor an IP address (the port goes into port_value, IPv6 has no brackets)", host)
		}
		return ip.String(), ""
	}
	if strings.Contains(host, ".") && strings.Trim(host, "0123456789.") == "" {
		return host, ipv4Problem(host)
	}
	if i := strings.IndexFunc(host, notInHost); i >= 0 {
		return "", fmt.Sprintf("address %q has %q, which is in no host name", host, host[i:i+1])
	}
	return host, nameProblem(strings.TrimSuffix(host, "."))
}

// ipv4Problem returns what is wrong with host, which has only digits and dots. Some
// resolvers take a host for an address that the standard library does not.
func ipv4Problem(host string) string {
	if _, err := netip.ParseAddr(host); err != nil {
		return fmt.Sprintf("address %q is no IPv4 address, want four numbers from 0 to 255 without leading zeros", host)
	}
	return ""
}

// nameProblem returns why no name server can know host, which has no dot at the end
// (RFC 1035, 2.3.4).
func nameProblem(host string) string {
	const maxName, maxLabel = 253, 63
	if len(host) > maxName {
		return fmt.Sprintf("address has %d bytes, want at most %d", len(host), maxName)
	}
	for label := range strings.SplitSeq(host, ".") {
		if label == "" {
			return fmt.Sprintf("address %q has an empty label", host)
		}
		if len(label) > maxLabel {
			return fmt.Sprintf("address has a label of %d bytes, want at most %d", len(label), maxLabel)
		}
	}
	return ""
}

func notInHost(r rune) bool {
	return r <= ' ' || r == 0x7f || strings.ContainsRune(`/\@?#,;[]"'<>{}|`, r)
}
