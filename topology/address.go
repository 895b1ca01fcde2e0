package topology

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// dialable returns address as gRPC dials it, or what is wrong with it. What
// validation of the message itself finds is not found again: then both are empty.
//
//	socket_address 192.0.2.1, 80  ->  192.0.2.1:80
//	socket_address 2001:db8::1, 80  ->  [2001:db8::1]:80
//	pipe /run/backend.sock  ->  unix:/run/backend.sock
func dialable(address *corev3.Address) (dial, problem string) {
	switch a := address.GetAddress().(type) {
	case *corev3.Address_SocketAddress:
		return dialableSocket(a.SocketAddress)
	case *corev3.Address_Pipe:
		if a.Pipe.GetPath() == "" {
			return "", ""
		}
		return "unix:" + a.Pipe.GetPath(), ""
	case *corev3.Address_EnvoyInternalAddress:
		return "", "envoy_internal_address is not supported, want socket_address or pipe"
	}
	if address == nil {
		return "", "address is missing"
	}
	return "", ""
}

func dialableSocket(socket *corev3.SocketAddress) (dial, problem string) {
	if p := socket.GetProtocol(); p != corev3.SocketAddress_TCP {
		return "", fmt.Sprintf("protocol %v is not supported, want TCP", p)
	}
	host, problem := canonicalHost(socket.GetAddress())
	if problem != "" {
		return "", problem
	}
	switch port := socket.GetPortSpecifier().(type) {
	case *corev3.SocketAddress_PortValue:
		if port.PortValue == 0 {
			return "", "port_value is 0, want 1 to 65535"
		}
		return net.JoinHostPort(host, strconv.FormatUint(uint64(port.PortValue), 10)), ""
	case *corev3.SocketAddress_NamedPort:
		return "", "named_port is not supported, want port_value"
	}
	return "", ""
}

// canonicalHost returns host with an IPv6 address in its shortest form, so that
// the same address is the same text, or what is wrong with it.
func canonicalHost(host string) (canonical, problem string) {
	if strings.Contains(host, ":") {
		ip, err := netip.ParseAddr(host)
		if err != nil {
			return "", fmt.Sprintf("address %q is neither a host name nor an IP address (the port goes into port_value, IPv6 has no brackets)", host)
		}
		return ip.String(), ""
	}
	if i := strings.IndexFunc(host, notInHost); i >= 0 {
		return "", fmt.Sprintf("address %q has %q, which is in no host name", host, host[i:i+1])
	}
	return host, ""
}

func notInHost(r rune) bool {
	return r <= ' ' || r == 0x7f || strings.ContainsRune(`/\@?#,;[]"'<>{}|`, r)
}
