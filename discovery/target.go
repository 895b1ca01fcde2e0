package discovery

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/config/options"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

// Target is the target of a channel, or a target nested in one, as passed to a Parser. Its methods
// must not be called after the Parser has returned.
type Target struct {
	// Target is the target to parse. Use Parameter to read its query.
	resolver.Target
	// Channel is the channel's target. It's different from Target if Target is nested.
	Channel resolver.Target
	// ClientConn and BuildOptions are the channel's, for FromResolver. They're zero in
	// understudy.Validate, and when gRPC only needs the authority.
	ClientConn   resolver.ClientConn
	BuildOptions resolver.BuildOptions

	options        options.ChannelOptions
	notes          []string
	scope          options.Scope
	query          url.Values
	readParameters map[string]bool
	err            error // the first one that Choice or Refresh has found
}

// Parameter returns the value of a parameter in the target's query, or "" if it isn't set. A Parser
// has to read all parameters that it supports, because query parameters that are never read are an
// error.
func (t *Target) Parameter(name string) string {
	t.readParameters[name] = true
	return t.query.Get(name)
}

// Choice returns the value of a parameter, or "" if it isn't set. If the value isn't one of
// choices, the target is invalid.
func (t *Target) Choice(name string, choices ...string) string {
	value := t.Parameter(name)
	if value != "" && !slices.Contains(choices, value) {
		t.fail(fmt.Errorf("%s: %s given, want %s", name, printable.Quote(value), strings.Join(choices, " or ")))
	}
	return value
}

func (t *Target) fail(err error) { t.err = cmp.Or(t.err, err) }

func (t *Target) errorf(format string, args ...any) error {
	return fmt.Errorf("target %s %s", printable.Quote(t.redacted()), fmt.Sprintf(format, args...))
}

func (t *Target) redacted() string {
	u := printable.HideTarget(t.URL)
	return u.String()
}

// readQuery parses the query and reads the parameters that are common to all sources.
func (t *Target) readQuery() error {
	query, err := url.ParseQuery(t.URL.RawQuery)
	switch {
	case t.URL.Opaque != "" && t.scope == options.Channel: // an entry may be dns:host or unix:path
		return t.errorf("lacks the slashes after the scheme, want %s", printable.Line(strings.Replace(t.redacted(), ":", ":///", 1), 300))
	case t.URL.Fragment != "":
		return t.errorf("has a fragment, want none (in a name, # is written %%23)")
	case err != nil:
		return t.errorf("has a query that does not parse (%v)", err)
	}
	t.query, t.readParameters = query, make(map[string]bool)
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if len(query[name]) != 1 || query[name][0] == "" {
			return t.errorf("must have exactly one value for %s", printable.Line(name, 100))
		}
		if err := t.options.Set(name, query.Get(name), t.scope); err != nil {
			return t.errorf("has an invalid parameter: %v", err)
		}
	}
	t.notes, err = t.options.ResolveConflicts()
	return err
}

func (t *Target) checkQuery() error {
	for _, name := range slices.Sorted(maps.Keys(t.query)) {
		if slices.Contains(options.Names(t.scope), name) || t.readParameters[name] {
			continue
		}
		if slices.Contains(options.Names(options.Channel), name) {
			return t.errorf("has the parameter %q, which is one of the whole channel: want it after the last entry", name)
		}
		known := slices.AppendSeq(options.Names(t.scope), maps.Keys(t.readParameters))
		slices.Sort(known)
		return t.errorf("has the unknown parameter %s (in a name, ? is written %%3F), want one of %s", printable.Quote(name), strings.Join(known, ", "))
	}
	return nil
}

func checkMechanisms(mechanisms []Mechanism, mayLackName bool) error {
	if len(mechanisms) == 0 {
		return errors.New("the source has no mechanisms, want at least one")
	}
	names := make(map[string]bool)
	for i, p := range mechanisms {
		if p.Source == nil {
			return fmt.Errorf("mechanism %d has no source", i+1)
		}
		if names[p.Name] || p.Name == "" && (!mayLackName || len(mechanisms) > 1) {
			return fmt.Errorf("mechanism %d has the name %q, want one that no other mechanism has", i+1, p.Name)
		}
		names[p.Name] = true
	}
	return nil
}
