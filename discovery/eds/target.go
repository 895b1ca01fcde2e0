package eds

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"google.golang.org/grpc/resolver"
)

// parseTarget returns the host and port of the management server, empty where it is
// for the bootstrap to say, and the name of the cluster.
func parseTarget(target resolver.Target) (host, cluster string, err error) {
	u := target.URL
	bad := func(format string, args ...any) error {
		return fmt.Errorf("target %q %s; want eds://server:port/cluster, or eds:///cluster with an xDS bootstrap", u.Redacted(), fmt.Sprintf(format, args...))
	}
	switch {
	case u.Opaque != "":
		return "", "", bad("lacks the slashes after the scheme")
	case u.User != nil:
		return "", "", bad("holds a user")
	case u.Fragment != "":
		return "", "", bad("holds a fragment (a # in a cluster's name is %%23)")
	case clusterOf(target) == "":
		return "", "", bad("names no cluster")
	case u.Host == "":
		return "", clusterOf(target), nil
	}
	name, port, err := net.SplitHostPort(u.Host)
	if err != nil {
		return "", "", bad("names a server without a port")
	}
	if name == "" {
		return "", "", bad("names a port without a server")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", "", bad("has port %q, which is not from 1 to 65535", port)
	}
	return u.Host, clusterOf(target), nil
}

// clusterOf returns everything after the slash that follows the server: names of
// clusters may hold slashes.
func clusterOf(target resolver.Target) string {
	return strings.TrimPrefix(target.URL.Path, "/")
}
