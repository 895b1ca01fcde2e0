package envoy

import (
	"fmt"
	"math"
	"net"
	"strconv"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/understudy-lb/understudy/internal/topology"
)

// flaw is a problem with an address. field is the invalid field, or "" if the whole address is
// invalid.
type flaw struct{ field, text string }

// dialable returns address in the form that gRPC dials, or its problems.
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

// Dial returns address in the form that gRPC dials, such as "192.0.2.1:443", or "" if gRPC cannot
// dial it. Equal addresses have the same form.
func Dial(address *corev3.Address) string {
	dial, _ := dialable(address)
	return dial
}

func dialableSocket(socket *corev3.SocketAddress) (dial string, wrong []flaw) {
	host, problem := topology.CanonicalHost(socket.GetAddress())
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
