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

// Check validates the fields of values that are options. values is a program's options, or the
// configuration of a policy. Zero fields are valid. nameOf returns an option's name in errors:
// ByName or ByField.
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

// Never is a value of Refresh that disables periodic lookups.
const Never time.Duration = -1

// ByName returns the option's name as a parameter of targets.
func ByName(name string) string { return name }

// ByField returns the option's name as a field of Go structs.
func ByField(name string) string { return strings.ToUpper(name[:1]) + name[1:] }

func (p *Program) field(name string) reflect.Value {
	return reflect.ValueOf(p).Elem().FieldByName(ByField(name))
}

// Copy copies the nonzero options that both structs have.
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

// ChannelOptions holds the options of a channel. Options in its target override those of the
// program.
type ChannelOptions struct {
	Program
	target []string // names of the options that the target sets
}

// Set sets the option name from a parameter of the target. place is the part of the target that
// contains the parameter. If this part may not contain an option of that name, Set does nothing.
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

// ResolveConflicts resolves conflicts between two options. If the target sets both options, or the
// program sets both, the conflict is an error. Otherwise, ResolveConflicts turns off the program's
// option and returns a note about this.
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

// ParseSettings parses the parameters of a target, for tools that have no channel. Unknown,
// repeated and invalid parameters are errors.
func ParseSettings(given url.Values) (Settings, error) {
	known := slices.DeleteFunc(Names(Channel), func(name string) bool { return name == "authority" }) // a parameter of the target, but not a setting
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
