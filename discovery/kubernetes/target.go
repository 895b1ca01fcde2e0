package kubernetes

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	_ "github.com/understudy-lb/understudy/internal/channel/join"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

// Scheme is the scheme of the targets of this package. k8s is an alias.
const Scheme = "kubernetes"

func init() {
	discovery.Register(Scheme, targetMechanisms)
	discovery.Register("k8s", targetMechanisms)
}

// linger is how long a watch goes on without users.
const linger = 30 * time.Second

// WithTransport makes targets of this package send requests through rt to the API server at host,
// such as https://10.0.0.1:6443, instead of to the API server of the program's cluster. rt adds the
// credentials. It must be comparable, such as a pointer, and safe for concurrent use. Channels with
// the same host and rt share their watches.
func WithTransport(host string, rt http.RoundTripper) discovery.SourceOption {
	return discovery.OwnOption(func(s *server) { s.host, s.transport = host, rt })
}

// query must be comparable.
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
	if family := t.Choice("addressType", "IPv4", "IPv6", "both"); family != "both" {
		q.family = family
	}
	q.neverTerminating = t.Choice("terminating", "ifNone", "never") == "never"
	s := source{q, discovery.OwnOptions(t, server{})}
	return []discovery.Mechanism{{Source: discovery.Shared(s, linger, s), Authority: authority, Prefer: "hints"}}, nil
}

var labelPattern = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

func parse(target resolver.Target) (query, string, error) {
	u := target.URL
	invalid := func(reason string) (query, string, error) {
		return query{}, "", fmt.Errorf("target %s %s; want kubernetes:///service.namespace:port", printable.Quote(u.Redacted()), reason)
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
	n, err := strconv.Atoi(port)
	if q.port = port; hasPort && (err == nil && (n < 1 || n > 65535) || err != nil && !labelPattern.MatchString(port)) {
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
	authority := strings.TrimSuffix(services[0]+"."+q.namespace, ".")
	slices.Sort(services)
	if services = slices.Compact(services); len(services) > 16 {
		return invalid("names more than 16 Services")
	}
	q.services = strings.Join(services, ",")
	return q, authority, nil
}

// source is comparable: equal sources find the same endpoints.
type source struct {
	query
	server
}

// Start starts or joins a watch. Targets that differ only in the port, or in which endpoints of the
// slices they use, share one.
func (s source) Start(r *discovery.Receiver) (discovery.Started, error) {
	r.Trying("watching the EndpointSlices of " + s.String())
	u := &user{query: s.query, receiver: r}
	w := watched{s.server, s.namespace, s.services}
	return discovery.Shared(w, 0, w).Start(r.With(discovery.Hooks{Mechanisms: u.update, Confirm: u.confirm, Unconfirmed: u.unconfirmed}))
}

// user makes the answers of a target from the snapshots of a watch. One call at a time.
type user struct {
	query
	receiver      *discovery.Receiver
	last          *discovery.Answer // nil before the first
	failure       error             // why the last snapshot gave no answer, or nil
	isUnconfirmed bool
}

func (u *user) update(list []discovery.Mechanism) {
	s := list[0].Source.(*snapshot)
	a, err := answer(u.query, s)
	if unknown, ok := errors.AsType[unknownPortError](err); ok && u.last != nil && !s.hasPodOf(u.last) {
		a, err = discovery.Answer{Service: u.String(), Empty: true, Why: printable.Text(unknown.Error())}, nil
	}
	if u.failure = err; err != nil {
		u.fail()
		return
	}
	u.last, u.isUnconfirmed = &a, false
	_ = u.receiver.Update(a) // only other slices can change an invalid answer
}

func (u *user) fail() {
	// The snapshot is current, but we cannot make an answer from it.
	if u.isUnconfirmed {
		u.isUnconfirmed = false
		u.receiver.Unconfirmed(nil, time.Time{})
	}
	u.receiver.Fail(u.failure)
}

func (u *user) confirm() {
	// If the current snapshot gave no answer, an earlier answer is still in use, and this does not
	// confirm it.
	switch {
	case u.failure == nil:
		u.isUnconfirmed = false
		u.receiver.Confirm()
	case u.isUnconfirmed:
		u.fail()
	}
}

func (u *user) unconfirmed(err error, since time.Time) {
	u.isUnconfirmed = err != nil
	u.receiver.Unconfirmed(err, since)
}
