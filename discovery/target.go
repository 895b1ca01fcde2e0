package discovery

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/options"
	"github.com/understudy-lb/understudy/internal/printable"
)

// Target is the target of a channel, or a target nested in one, as passed to a Parser. Its methods
// may be called only until the Parser returns.
type Target struct {
	// Target is the target to parse. Use Parameter to read its query.
	resolver.Target
	// Channel is the channel's target. It differs from Target if Target is nested.
	Channel resolver.Target
	// ClientConn and BuildOptions are those of the channel, for FromResolver. They are zero in
	// understudy.Validate, and when gRPC needs only the authority.
	ClientConn   resolver.ClientConn
	BuildOptions resolver.BuildOptions

	given  options.Given
	notes  []string
	place  options.Scope
	query  url.Values
	own    map[string]bool
	common string    // a parameter that the source has read although it belongs to all targets, or ""
	asked  *sync.Map // types of options that this target or a nested one has read
}

// Parameter returns the value of a parameter in the target's query, or "" if the parameter is not
// set. A Parser must read all parameters that it supports, because a query parameter that is never
// read is an error. Reading a parameter that is common to all targets is a bug in the source, and
// is also an error.
func (t *Target) Parameter(name string) string {
	for _, place := range []options.Scope{options.Channel, options.Lookups} {
		if slices.Contains(options.Names(place), name) {
			t.common = name
		}
	}
	return t.parameter(name)
}

func (t *Target) parameter(name string) string {
	t.own[name] = true
	return t.query.Get(name)
}

func (t *Target) shown() string {
	u := printable.HideTarget(t.URL)
	return u.String()
}

func (t *Target) wrong(format string, args ...any) error {
	return fmt.Errorf("target %s %s", printable.Quote(t.shown()), fmt.Sprintf(format, args...))
}

const longName = 100

// readQuery parses the query and reads the parameters that are common to all sources.
func (t *Target) readQuery() error {
	query, err := url.ParseQuery(t.URL.RawQuery)
	switch {
	case err != nil:
		return t.wrong("has a query that does not parse (%v)", err)
	case t.URL.ForceQuery:
		return t.wrong("has a question mark that nothing follows (in a name, ? is %%3F)")
	}
	t.query, t.own = query, make(map[string]bool)
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if len(query[name]) != 1 || query[name][0] == "" {
			return t.wrong("must have exactly one value for %s", printable.Line(name, longName))
		}
		if _, err := t.given.Set(name, query.Get(name), t.place); err != nil {
			return t.wrong("has a mistake: %v", err)
		}
	}
	t.notes, err = t.given.Settle()
	return err
}

func (t *Target) checkQuery() error {
	if t.common != "" {
		return fmt.Errorf("the source reads the parameter %q, which is common to all targets; want another name", t.common)
	}
	for _, name := range slices.Sorted(maps.Keys(t.query)) {
		if slices.Contains(options.Names(t.place), name) || t.own[name] {
			continue
		}
		if slices.Contains(options.Names(options.Channel), name) {
			return t.wrong("has the parameter %q, which is one of the whole channel: want it after the last part", name)
		}
		return t.wrong("has the unknown parameter %s (in a name, ? is %%3F), want one of %s", printable.Quote(name), t.names())
	}
	return nil
}

func (t *Target) names() string {
	all := slices.AppendSeq(options.Names(t.place), maps.Keys(t.own))
	slices.Sort(all)
	return strings.Join(all, ", ")
}

var errNoName = errors.New("part 1 has no name, want one")

func checkParts(parts []Mechanism) error {
	if len(parts) == 0 {
		return errors.New("the target has no parts")
	}
	taken := make(map[string]bool)
	for i, p := range parts {
		if p.Source == nil {
			return fmt.Errorf("part %d has no source", i+1)
		}
		if taken[p.Name] || p.Name == "" && len(parts) > 1 {
			return fmt.Errorf("part %d has the name %q, want one that no other part has", i+1, p.Name)
		}
		taken[p.Name] = true
	}
	return nil
}
