package eds

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/cds"
	"github.com/understudy-lb/understudy/internal/printable"
)

// maxName limits the bytes of a cluster's name. All channels of a process share one request, so a
// name that makes it too large for the server would affect all of them.
const maxName = 4096

// parseTarget returns the management servers and the cluster of a target. hosts is empty if the
// bootstrap lists the servers.
func parseTarget(target resolver.Target) (hosts []string, cluster string, err error) {
	u := target.URL
	bad := func(format string, args ...any) error {
		return fmt.Errorf("target %s %s; want eds://server:port/cluster, or eds:///cluster with an xDS bootstrap", printable.Quote(u.Redacted()), fmt.Sprintf(format, args...))
	}
	switch {
	case u.Opaque != "":
		return nil, "", bad("lacks the slashes after the scheme")
	case u.User != nil:
		return nil, "", bad("holds a user")
	case u.Fragment != "":
		return nil, "", bad("holds a fragment (a # in a cluster's name is %%23)")
	case clusterOf(target) == "":
		return nil, "", bad("names no cluster")
	case !utf8.ValidString(clusterOf(target)):
		return nil, "", bad("names a cluster that is not UTF-8")
	case len(clusterOf(target)) > maxName:
		return nil, "", bad("names a cluster of %d bytes, want at most %d", len(clusterOf(target)), maxName)
	case cds.NameProblem(clusterOf(target)) != "":
		return nil, "", bad("names a cluster with an invalid name: %s", cds.NameProblem(clusterOf(target)))
	case u.Host == "":
		return nil, clusterOf(target), nil
	}
	for host := range strings.SplitSeq(u.Host, ",") {
		if problem := hostProblem(host); problem != "" {
			return nil, "", bad("%s", problem)
		}
		if slices.Contains(hosts, host) {
			return nil, "", bad("names the server %s twice", host)
		}
		hosts = append(hosts, host)
	}
	return hosts, clusterOf(target), nil
}

func hostProblem(host string) string {
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		return "names a server without a port"
	}
	if name == "" {
		return "names a port without a server"
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fmt.Sprintf("has port %s, which is not from 1 to 65535", printable.Quote(port))
	}
	return ""
}

// clusterOf returns the name of the cluster: the path without its first slash. The name may contain
// slashes itself.
func clusterOf(target resolver.Target) string {
	return strings.TrimPrefix(target.URL.Path, "/")
}
