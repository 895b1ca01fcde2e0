package eds

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/envoy/cds"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

// maxNameLength limits the length of a cluster's name, in bytes. The channels of a process share
// one request, and a longer name could make it too large for the server.
const maxNameLength = 4096

// parseTarget returns the management servers and the cluster in a target. If the target doesn't
// name any servers, uris is nil, and we use those in the bootstrap.
func parseTarget(target resolver.Target) (uris []string, cluster string, err error) {
	u := target.URL
	cluster = strings.TrimPrefix(u.Path, "/") // the name may contain slashes
	invalid := func(format string, args ...any) error {
		return fmt.Errorf("target %s %s; want eds://xds.example.com:443/cluster, or eds:///cluster with an xDS bootstrap", printable.Quote(u.Redacted()), fmt.Sprintf(format, args...))
	}
	switch {
	case u.User != nil:
		return nil, "", invalid("has user information")
	case !utf8.ValidString(cluster):
		return nil, "", invalid("names a cluster that is not UTF-8")
	case len(cluster) > maxNameLength:
		return nil, "", invalid("names a cluster of %d bytes, want at most %d", len(cluster), maxNameLength)
	case cds.NameProblem(cluster) != "":
		return nil, "", invalid("names a cluster with an invalid name: %s", cds.NameProblem(cluster))
	case u.Host == "":
		return nil, cluster, nil
	}
	for host := range strings.SplitSeq(u.Host, ",") {
		name, port, err := net.SplitHostPort(host)
		if n, numberErr := strconv.ParseUint(port, 10, 16); err != nil || name == "" || numberErr != nil || n == 0 || slices.Contains(uris, dnsPrefix+host) {
			return nil, "", invalid("has the server %s, want different ones with a name and a port from 1 to 65535", printable.Quote(host))
		}
		uris = append(uris, dnsPrefix+host)
	}
	return uris, cluster, nil
}
