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

// Scheme is the scheme of this package's targets. k8s is an alias.
const Scheme = "kubernetes"

func init() {
	discovery.Register(Scheme, targetMechanisms)
	discovery.Register("k8s", targetMechanisms)
}

const linger = 30 * time.Second // how long a watch keeps running without users

// WithTransport makes this package's targets use the API server at host, e.g.
// https://10.0.0.1:6443, instead of the one in the program's own cluster. Requests go through rt,
// which adds the credentials. It must be safe for concurrent use and comparable, e.g. a pointer.
// Channels share watches if they have the same host and rt.
func WithTransport(host string, rt http.RoundTripper) discovery.SourceOption {
	return discovery.OwnOption(func(s *server) { s.host, s.transport = host, rt })
}

// query must be comparable.
type query struct {
	namespace        string // "" for the pod's own
	services         string // sorted and comma-separated
	port             string // name or number, "" for the default
	neverTerminating bool
	family           string // "IPv4" or "IPv6", "" for both
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

// source is comparable, and equal sources find the same endpoints.
type source struct {
	query
	server
}

// Start starts a watch or joins an existing one. Targets share a watch if they only differ in the
// port, or in which of the slices' endpoints they use.
func (s source) Start(r *discovery.Receiver) (discovery.Started, error) {
	r.Trying("watching the EndpointSlices of " + s.String())
	u := &user{query: s.query, receiver: r}
	w := watched{s.server, s.namespace, s.services}
	return discovery.Shared(w, 0, w).Start(r.With(discovery.Hooks{Mechanisms: u.update, Confirm: u.confirm, Unconfirmed: u.unconfirmed}))
}

// user turns the snapshots of a watch into answers for one target. Not safe for concurrent use.
type user struct {
	query
	receiver      *discovery.Receiver
	last          *discovery.Answer // nil before the first one
	failure       error             // why the last snapshot didn't result in an answer, or nil
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
	_ = u.receiver.Update(a) // if the answer is invalid, retrying won't help until the slices change
}

func (u *user) fail() {
	// Even though we can't make an answer from it, the snapshot is current.
	if u.isUnconfirmed {
		u.isUnconfirmed = false
		u.receiver.Unconfirmed(nil, time.Time{})
	}
	u.receiver.Fail(u.failure)
}

func (u *user) confirm() {
	// If the current snapshot didn't result in an answer, we're still using an older one, and this
	// call doesn't confirm that.
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
