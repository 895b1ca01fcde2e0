package discovery

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/feed"
	"github.com/understudy-lb/understudy/internal/secret"
)

// Target is the target of a channel, or of a part of one, as a Parser gets it. Its
// methods are for the Parser, before it returns.
type Target struct {
	// Target is the target to read. Parameter reads its query.
	resolver.Target
	// Channel is the channel's target. It differs from Target where that is a part of
	// it.
	Channel resolver.Target
	// ClientConn and BuildOptions are the channel's, for FromResolver. They are empty
	// where the target is read for its authority alone, or by Validate.
	ClientConn   resolver.ClientConn
	BuildOptions resolver.BuildOptions

	options options
	query   url.Values
	known   map[string]func(*options, string) error // parameters for any source
	own     map[string]bool                         // parameters that the source asked for
}

// Parameter returns the value of a parameter of the source's own in the target's query,
// or "" if it is not given. A parameter that is in the query and for which nobody asks
// is a mistake, so a Parser asks for all that it knows.
func (t *Target) Parameter(name string) string {
	t.own[name] = true
	return t.query.Get(name)
}

// shown returns the target without its passwords and tokens.
func (t *Target) shown() string {
	u := secret.Target(t.URL)
	return u.String()
}

// wrong returns an error about the target.
func (t *Target) wrong(format string, args ...any) error {
	return fmt.Errorf("target %s %s", feed.Quote(t.shown()), fmt.Sprintf(format, args...))
}

// readQuery reads the parameters that all sources have.
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
			return t.wrong("has not one %s, but none or several", name)
		}
		if set := t.known[name]; set != nil {
			if err := set(&t.options, query.Get(name)); err != nil {
				return t.wrong("has a mistake: %s: %v", name, err)
			}
		}
	}
	return t.options.check()
}

// checkQuery returns an error if the query has a parameter that nobody knows.
func (t *Target) checkQuery() error {
	for _, name := range slices.Sorted(maps.Keys(t.query)) {
		if t.known[name] != nil || t.own[name] {
			continue
		}
		if parameters[name] != nil {
			return t.wrong("has the parameter %q, which is one of the whole channel: want it after the last part", name)
		}
		return t.wrong("has the unknown parameter %q (in a name, ? is %%3F), want one of %s", name, t.names())
	}
	return nil
}

// names returns the names of all parameters that the target may have.
func (t *Target) names() string {
	all := slices.Collect(maps.Keys(t.known))
	all = slices.AppendSeq(all, maps.Keys(t.own))
	slices.Sort(all)
	return strings.Join(all, ", ")
}

var errNoName = errors.New("part 1 has no name, want one")

// checkParts returns an error if a part breaks the rules of Part.
func checkParts(parts []Part) error {
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
