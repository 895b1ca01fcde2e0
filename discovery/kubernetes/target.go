package kubernetes

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	_ "github.com/understudy-lb/understudy/internal/channel/resolving"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

// Scheme is the scheme of the targets of this package. k8s is an alias.
const Scheme = "kubernetes"

func init() {
	discovery.Register(Scheme, targetMechanisms)
	discovery.Register("k8s", targetMechanisms)
}

const targetForm = "kubernetes:///service.namespace:port"

// linger is the time for which a watch continues after its last user was closed.
const linger = 30 * time.Second

// WithTransport makes targets of this package send requests through rt to the API server at host,
// such as https://10.0.0.1:6443, instead of to the API server of the program's cluster. rt adds the
// credentials. It must be comparable, such as a pointer, and safe for concurrent use. Channels with
// the same host and rt share their watches.
func WithTransport(host string, rt http.RoundTripper) discovery.SourceOption {
	return discovery.OwnOption(func(s *server) { s.host, s.transport = host, rt })
}

// query is the content of a target. The type must be comparable.
type query struct {
	namespace        string // "" means the namespace of the pod
	services         string // sorted and comma-separated
	port             string // name or number; "" means the default
	neverTerminating bool
	family           string // "IPv4" or "IPv6"; "" means both
}

func targetMechanisms(t *discovery.Target) ([]discovery.Mechanism, error) {
	q, authority, err := parse(t.Target)
	if err != nil {
		return nil, err
	}
	switch given := t.Parameter("terminating"); given {
	case "", "ifNone":
	case "never":
		q.neverTerminating = true
	default:
		return nil, fmt.Errorf("terminating: %s given, want ifNone or never", printable.Quote(given))
	}
	switch given := t.Parameter("addressType"); given {
	case "", "both":
	case "IPv4", "IPv6":
		q.family = given
	default:
		return nil, fmt.Errorf("addressType: %s given, want IPv4, IPv6 or both", printable.Quote(given))
	}
	s := source{q, discovery.OwnOptions(t, server{})}
	return []discovery.Mechanism{{Source: discovery.Shared(s, linger, s), Authority: authority, Prefer: "hints"}}, nil
}

var labelPattern = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

func parse(target resolver.Target) (query, string, error) {
	u := target.URL
	invalid := func(reason string) (query, string, error) {
		return query{}, "", fmt.Errorf("target %s %s; want %s", printable.Quote(u.Redacted()), reason, targetForm)
	}
	if u.Opaque != "" || u.User != nil || u.Fragment != "" {
		return invalid("lacks the slashes, or has user information or a fragment")
	}
	var q query
	text := strings.TrimPrefix(u.Path, "/")
	switch {
	case text == "":
		text = u.Host
	case u.Host != "":
		if q.namespace = u.Host; !labelPattern.MatchString(q.namespace) {
			return invalid("has the namespace " + printable.Quote(u.Host))
		}
	}
	names, port, hasPort := strings.Cut(text, ":")
	if q.port = port; hasPort && !isValidPort(port) {
		return invalid(fmt.Sprintf("has the port %s, want a name or a number from 1 to 65535", printable.Quote(port)))
	}
	var services []string
	for given := range strings.SplitSeq(names, ",") {
		name, afterName, _ := strings.Cut(given, ".")
		namespace, domain, hasDomain := strings.Cut(afterName, ".")
		switch {
		case !labelPattern.MatchString(name):
			return invalid(fmt.Sprintf("has %s for a Service", printable.Quote(name)))
		case hasDomain && domain != "svc" && !strings.HasPrefix(domain, "svc."):
			return invalid("has a name that continues after the namespace, but not with svc")
		case afterName != "" && !labelPattern.MatchString(namespace), q.namespace != "" && namespace != "" && namespace != q.namespace:
			return invalid(fmt.Sprintf("has the namespace %s, want one for all Services", printable.Quote(namespace)))
		case namespace != "":
			q.namespace = namespace
		}
		services = append(services, name)
	}
	authority := services[0]
	if q.namespace != "" {
		authority += "." + q.namespace
	}
	slices.Sort(services)
	if services = slices.Compact(services); len(services) > 16 {
		return invalid("names more than 16 Services")
	}
	q.services = strings.Join(services, ",")
	return q, authority, nil
}

func isValidPort(p string) bool {
	n, err := strconv.Atoi(p)
	return err == nil && n > 0 && n < 65536 || err != nil && labelPattern.MatchString(p)
}
