package messages

import (
	"fmt"
	"math"
	"net"
	"strconv"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/understudy-lb/understudy/internal/channel/topology"
)

// addressProblem is a problem with an address. field is the path of the invalid field, or "" if the
// whole address is invalid.
type addressProblem struct{ field, text string }

// dialTarget returns the address in the form that gRPC dials, or its problems.
//
//	socket_address 192.0.2.1, 80  ->  192.0.2.1:80
//	socket_address 2001:db8::1, 80  ->  [2001:db8::1]:80
//	pipe /run/backend.sock  ->  unix:/run/backend.sock
func dialTarget(address *corev3.Address) (target string, problems []addressProblem) {
	switch a := address.GetAddress().(type) {
	case *corev3.Address_SocketAddress:
		return dialTargetOfSocket(a.SocketAddress)
	case *corev3.Address_Pipe:
		if a.Pipe.GetPath() == "" {
			return "", []addressProblem{{"pipe.path", "path is empty"}}
		}
		return "unix:" + a.Pipe.GetPath(), nil
	case *corev3.Address_EnvoyInternalAddress:
		return "", []addressProblem{{"", "envoy_internal_address is not supported, want socket_address or pipe"}}
	}
	if address == nil {
		return "", []addressProblem{{"", "address is missing"}}
	}
	return "", []addressProblem{{"", "neither socket_address nor pipe is given"}}
}

// Dial returns the address in the form that gRPC dials, such as "192.0.2.1:443", or "" if gRPC
// cannot dial it. The results for two spellings of the same address are equal.
func Dial(address *corev3.Address) string {
	target, _ := dialTarget(address)
	return target
}

func dialTargetOfSocket(socket *corev3.SocketAddress) (target string, problems []addressProblem) {
	host, problem := topology.CanonicalHost(socket.GetAddress())
	if problem != "" {
		problems = append(problems, addressProblem{"socket_address.address", problem})
	}
	port := socket.GetPortValue()
	switch socket.GetPortSpecifier().(type) {
	case *corev3.SocketAddress_PortValue:
		if port == 0 || port > math.MaxUint16 {
			problems = append(problems, addressProblem{"socket_address.port_value", fmt.Sprintf("port_value is %d, want 1 to 65535", port)})
		}
	case *corev3.SocketAddress_NamedPort:
		problems = append(problems, addressProblem{"socket_address.named_port", "named_port is not supported, want port_value"})
	default:
		problems = append(problems, addressProblem{"socket_address", "port_value is missing"})
	}
	if problems != nil {
		return "", problems
	}
	return net.JoinHostPort(host, strconv.FormatUint(uint64(port), 10)), nil
}
