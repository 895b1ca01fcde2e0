package messages

import (
	"math"
	"net"
	"strconv"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/understudy-lb/understudy/internal/channel/topology"
)

// Dial returns the address in the form that gRPC dials, which is the same for all spellings of the
// address. If gRPC can't dial it, target is "" and problems says why.
//
//	socket_address 192.0.2.1, 80  ->  192.0.2.1:80
//	socket_address 2001:db8::1, 80  ->  [2001:db8::1]:80
//	pipe /run/backend.sock  ->  unix:/run/backend.sock
func Dial(address *corev3.Address) (target string, problems Invalid) {
	switch a := address.GetAddress().(type) {
	case *corev3.Address_SocketAddress:
		return dialSocket(a.SocketAddress)
	case *corev3.Address_Pipe:
		if a.Pipe.GetPath() != "" {
			return "unix:" + a.Pipe.GetPath(), problems
		}
		problems.Add("pipe.path", "path is empty")
	case *corev3.Address_EnvoyInternalAddress:
		problems.Add("", "envoy_internal_address is not supported, want socket_address or pipe")
	default:
		problems.Add("", "neither socket_address nor pipe is given")
	}
	return "", problems
}

func dialSocket(socket *corev3.SocketAddress) (target string, problems Invalid) {
	host, problem := topology.CanonicalHost(socket.GetAddress())
	if problem != "" {
		problems.Add("socket_address.address", "%s", problem)
	}
	port := socket.GetPortValue()
	switch socket.GetPortSpecifier().(type) {
	case *corev3.SocketAddress_PortValue:
		if port == 0 || port > math.MaxUint16 {
			problems.Add("socket_address.port_value", "port_value is %d, want 1 to 65535", port)
		}
	case *corev3.SocketAddress_NamedPort:
		problems.Add("socket_address.named_port", "named_port is not supported, want port_value")
	default:
		problems.Add("socket_address", "port_value is missing")
	}
	if problems.Problems != nil {
		return "", problems
	}
	return net.JoinHostPort(host, strconv.FormatUint(uint64(port), 10)), problems
}
