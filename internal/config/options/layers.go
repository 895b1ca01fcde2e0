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
// configuration of a policy. Zero fields are valid. nameOf returns the name of an option in error
// messages.
func Check(values any, nameOf func(Option) string) error {
	v := reflect.ValueOf(values)
	if err := checkRanges(v, nameOf); err != nil {
		return err
	}
	for _, o := range table {
		if err := o.conflict(v, nameOf); err != nil {
			return err
		}
	}
	return nil
}

func checkRanges(v reflect.Value, nameOf func(Option) string) error {
	for _, o := range table {
		f := v.FieldByName(o.Field)
		if !f.IsValid() || f.IsZero() || o.AllowZero && f.Int() == int64(Never) {
			continue
		}
		if err := o.check(displayValue(o, f)); err != nil {
			return fmt.Errorf("%s: %w", nameOf(o), err)
		}
	}
	return nil
}

// Never is a value of Refresh that disables periodic lookups.
const Never time.Duration = -1

// ByName returns the option's name as a parameter of targets.
func ByName(o Option) string { return o.Name }

// ByField returns the option's name as a field of Options.
func ByField(o Option) string { return o.Field }

var endpointPolicy, _ = lookUp("endpointPolicy")

// conflict returns an error if v sets o and an endpoint policy that it cannot be combined with.
func (o Option) conflict(v reflect.Value, nameOf func(Option) string) error {
	value, policy := v.FieldByName(o.Field), v.FieldByName(endpointPolicy.Field)
	if o.Conflicts == nil || !value.IsValid() || !policy.IsValid() || value.IsZero() || !o.Conflicts(EndpointPolicy(policy.String())) {
		return nil
	}
	if o.Kind == Toggle && value.Kind() == reflect.Int && value.Int() != int64(1) { // only a toggle that is on excludes a policy
		return nil
	}
	return fmt.Errorf("%s: given together with %s %s, want one of them: %s", nameOf(o), nameOf(endpointPolicy), policy.String(), o.ConflictReason)
}

func displayValue(o Option, f reflect.Value) any {
	if o.Kind == Duration {
		return time.Duration(f.Int())
	}
	return f.Interface()
}

// Copy copies the nonzero options that both structs have.
func Copy(to, from any) {
	dst, src := reflect.ValueOf(to).Elem(), reflect.ValueOf(from)
	for _, o := range table {
		t, f := dst.FieldByName(o.Field), src.FieldByName(o.Field)
		if t.IsValid() && f.IsValid() && !f.IsZero() && f.CanConvert(t.Type()) {
			t.Set(f.Convert(t.Type()))
		}
	}
}

// ChannelOptions holds the options of a channel. Options in its target override those of the
// program.
type ChannelOptions struct {
	Program
	target map[string]bool
}

// Set sets the option name from a parameter of the target. place is the part of the target that
// contains the parameter. known reports whether this part may contain an option of that name.
func (g *ChannelOptions) Set(name, text string, place Scope) (known bool, err error) {
	o, ok := lookUp(name)
	if !ok || !o.allowedIn(place) {
		return false, nil
	}
	value, err := o.parse(text)
	if err != nil {
		return true, fmt.Errorf("%s: %w", name, err)
	}
	g.target = maps.Clone(g.target)
	if g.target == nil {
		g.target = make(map[string]bool)
	}
	g.target[name] = true
	o.set(&g.Program, value)
	return true, nil
}

func (o Option) allowedIn(place Scope) bool {
	switch place {
	case Channel:
		return o.Place == Channel || o.Place == Entry
	default:
		return o.Place == place
	}
}

func (o Option) set(p *Program, value any) {
	f := reflect.ValueOf(p).Elem().FieldByName(o.Field)
	f.Set(reflect.ValueOf(value).Convert(f.Type()))
	switch {
	case o.Kind == Toggle:
		p.NoOutlierDetection = !p.OutlierDetection
	case o.AllowZero && f.IsZero():
		f.SetInt(int64(Never))
	}
}

// ResolveConflicts resolves conflicts between two options. If the target sets both options, or the
// program sets both, the conflict is an error. Otherwise, ResolveConflicts turns off the program's
// option and returns a note about this.
func (g *ChannelOptions) ResolveConflicts() (notes []string, err error) {
	if g.Err != nil {
		return nil, g.Err
	}
	v := reflect.ValueOf(&g.Program).Elem()
	if err := checkRanges(v, ByName); err != nil {
		return nil, err
	}
	for _, o := range table {
		err := o.conflict(v, ByName)
		switch disabled := endpointPolicy; {
		case err == nil:
		case g.target[o.Name] == g.target[endpointPolicy.Name]:
			return nil, err
		default:
			kept := o
			if !g.target[o.Name] {
				disabled, kept = o, endpointPolicy
			}
			v.FieldByName(disabled.Field).SetZero()
			notes = append(notes, fmt.Sprintf("%s in the target disables %s in the program, because they exclude each other", kept.Name, disabled.Name))
		}
	}
	return notes, nil
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
		if _, err := g.Set(name, given.Get(name), Channel); err != nil {
			return Settings{}, err
		}
	}
	_, err := g.ResolveConflicts()
	return g.Settings, err
}
