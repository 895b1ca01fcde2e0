package options

import (
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/understudy-lb/understudy/internal/text/printable"
)

// Check validates all fields of values that are options. Zero is always valid. values can be a
// program's options or the configuration of a policy, and nameOf (ByName or ByField) decides what
// options are called in errors.
func Check(values any, nameOf func(name string) string) error {
	var p Program
	Copy(&p, values)
	for _, o := range table {
		f := p.field(o.Name)
		if o.Check == nil || f.IsZero() || o.AllowZero && f.Int() == int64(Never) {
			continue
		}
		if err := o.Check(f.Interface()); err != nil {
			return fmt.Errorf("%s: %w", nameOf(o.Name), err)
		}
	}
	for _, o := range table {
		if o.Conflicts != nil && o.Conflicts(p.Settings) {
			return fmt.Errorf("%s: given together with %s %s, want one of them: %s", nameOf(o.Name), nameOf(endpointPolicy), p.EndpointPolicy, o.ConflictReason)
		}
	}
	return nil
}

// Never as the value of Refresh turns off periodic lookups.
const Never time.Duration = -1

// ByName returns an option's name in the parameters of a target.
func ByName(name string) string { return name }

// ByField returns an option's name in Go structs.
func ByField(name string) string { return strings.ToUpper(name[:1]) + name[1:] }

func (p *Program) field(name string) reflect.Value {
	return reflect.ValueOf(p).Elem().FieldByName(ByField(name))
}

// Copy copies all options that both structs have and that aren't zero in from.
func Copy(to, from any) {
	dst, src := reflect.ValueOf(to).Elem(), reflect.ValueOf(from)
	for _, o := range table {
		name := ByField(o.Name)
		t, f := dst.FieldByName(name), src.FieldByName(name)
		if t.IsValid() && f.IsValid() && !f.IsZero() {
			t.Set(f.Convert(t.Type()))
		}
	}
}

// ChannelOptions are the options of a channel. What the target sets takes precedence over the
// program.
type ChannelOptions struct {
	Program
	target []string // names of the options set by the target
}

// Set sets an option from a parameter of the target. place is where the parameter was found. If the
// option isn't allowed there, Set does nothing.
func (g *ChannelOptions) Set(name, text string, place Scope) error {
	for _, o := range table {
		if o.Name != name || !o.allowedIn(place) {
			continue
		}
		if err := o.set(g.field(name), text); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		g.target = append(slices.Clip(g.target), name)
	}
	return nil
}

// ResolveConflicts deals with options that can't be combined. If both come from the target, or both
// from the program, that's an error. Otherwise the target wins: the program's option is turned off,
// and a note says so.
func (g *ChannelOptions) ResolveConflicts() (notes []string, err error) {
	if g.Err != nil {
		return nil, g.Err
	}
	policyInTarget := slices.Contains(g.target, endpointPolicy)
	for _, o := range table {
		if o.Conflicts == nil || !o.Conflicts(g.Settings) || policyInTarget == slices.Contains(g.target, o.Name) {
			continue
		}
		kept, disabled := o.Name, endpointPolicy
		if policyInTarget {
			kept, disabled = disabled, kept
		}
		g.field(disabled).SetZero()
		notes = append(notes, fmt.Sprintf("%s in the target disables %s in the program, because they exclude each other", kept, disabled))
	}
	return notes, Check(g.Program, ByName)
}

// Names returns the sorted names of the parameters that may appear in place.
func Names(place Scope) []string {
	var names []string
	for _, o := range table {
		if o.allowedIn(place) {
			names = append(names, o.Name)
		}
	}
	slices.Sort(names)
	return names
}

func (o Option) allowedIn(place Scope) bool {
	return o.Place == place || o.Place == Entry && place == Channel
}

// ParseSettings parses target parameters for tools that don't have a channel. It fails if a
// parameter is unknown, repeated or invalid.
func ParseSettings(given url.Values) (Settings, error) {
	known := slices.DeleteFunc(Names(Channel), func(name string) bool { return name == "authority" }) // authority is a parameter but not a setting
	var g ChannelOptions
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(known, name) {
			return Settings{}, fmt.Errorf("unknown parameter %s, want one of %s", printable.Quote(name), strings.Join(known, ", "))
		}
		if len(given[name]) != 1 || given[name][0] == "" {
			return Settings{}, fmt.Errorf("parameter %s has no value, or several; want exactly one", printable.Line(name, 100))
		}
		if err := g.Set(name, given.Get(name), Channel); err != nil {
			return Settings{}, err
		}
	}
	_, err := g.ResolveConflicts()
	return g.Settings, err
}
