package options

import (
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/understudy-lb/understudy/internal/printable"
)

// Check says what is wrong with the fields of a struct that are options: a program's, or the
// configuration of a policy. Where a field is 0, that stands for the default. named says how
// to call an option.
func Check(values any, named func(Option) string) error {
	v := reflect.ValueOf(values)
	if err := ranges(v, named); err != nil {
		return err
	}
	for _, o := range table {
		if err := o.conflict(v, named); err != nil {
			return err
		}
	}
	return nil
}

func ranges(v reflect.Value, named func(Option) string) error {
	for _, o := range table {
		f := v.FieldByName(o.Field)
		if !f.IsValid() || f.IsZero() || o.OrZero && f.Int() == int64(Never) {
			continue
		}
		if err := o.check(shown(o, f)); err != nil {
			return fmt.Errorf("%s: %w", named(o), err)
		}
	}
	return nil
}

// Never is a Refresh that does not come.
const Never time.Duration = -1

// ByName calls an option as a target does.
func ByName(o Option) string { return o.Name }

// ByField calls an option as a program does.
func ByField(o Option) string { return o.Field }

// other returns the name of the option with which this one may be in conflict.
func (o Option) other() string { return o.AtLeast + o.Not }

// conflict says whether the value of an option is not to be had together with that of another
// one, in a struct that may have both.
func (o Option) conflict(v reflect.Value, named func(Option) string) error {
	with, ok := find(o.other())
	mine, others := v.FieldByName(o.Field), v.FieldByName(with.Field)
	if !ok || !mine.IsValid() || !others.IsValid() || mine.IsZero() || others.IsZero() {
		return nil
	}
	if o.Not != "" {
		if mine.Kind() == reflect.Int && mine.Int() != int64(1) { // On
			return nil
		}
		return fmt.Errorf("%s: given together with %s, want one of them: %s", named(o), named(with), o.Why)
	}
	less, _ := number(mine.Interface())
	if least, _ := number(others.Interface()); less < least {
		return fmt.Errorf("%s: %v given, want %v, or %s, %v, and more", named(o), shown(o, mine), shown(o, reflect.Zero(mine.Type())), named(with), shown(with, others))
	}
	return nil
}

func shown(o Option, f reflect.Value) any {
	if o.Kind == Duration {
		return time.Duration(f.Int())
	}
	return f.Interface()
}

// Copy sets the options of one struct to those of another that are not 0, where both have them.
func Copy(to, from any) {
	dst, src := reflect.ValueOf(to).Elem(), reflect.ValueOf(from)
	for _, o := range table {
		t, f := dst.FieldByName(o.Field), src.FieldByName(o.Field)
		if t.IsValid() && f.IsValid() && !f.IsZero() && f.CanConvert(t.Type()) {
			t.Set(f.Convert(t.Type()))
		}
	}
}

// Given are the options of a channel: those of the program, and those of the target, which go
// before them.
type Given struct {
	Program
	target map[string]bool // names that the target gives
}

// Set takes a parameter of the target. It reports whether there is one of that name that may
// stand at the place.
func (g *Given) Set(name, text string, place Scope) (known bool, err error) {
	o, ok := find(name)
	if !ok || !o.at(place) {
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
	o.put(&g.Program, value)
	return true, nil
}

// at reports whether an option may stand in a target at a place: for the whole channel, in a
// part, or where names are looked up.
func (o Option) at(place Scope) bool {
	switch place {
	case Channel:
		return o.Place == Channel || o.Place == Part
	default:
		return o.Place == place
	}
}

func (o Option) put(p *Program, value any) {
	f := reflect.ValueOf(p).Elem().FieldByName(o.Field)
	f.Set(reflect.ValueOf(value).Convert(f.Type()))
	switch {
	case o.Kind == Toggle:
		p.NoOutlierDetection = !p.OutlierDetection
	case o.OrZero && f.IsZero():
		f.SetInt(int64(Never))
	}
}

// Settle looks for options that are in conflict. Where the same layer gives both, that is an
// error. Otherwise the target's switches the program's off, and the notes say so.
func (g *Given) Settle() (notes []string, err error) {
	if g.Err != nil {
		return nil, g.Err
	}
	v := reflect.ValueOf(&g.Program).Elem()
	if err := ranges(v, ByName); err != nil {
		return nil, err
	}
	for _, o := range table {
		err := o.conflict(v, ByName)
		with, _ := find(o.other())
		switch off := with; {
		case err == nil:
		case g.target[o.Name] == g.target[with.Name]:
			return nil, err
		default:
			on := o
			if !g.target[o.Name] {
				off, on = o, with
			}
			v.FieldByName(off.Field).SetZero()
			notes = append(notes, fmt.Sprintf("%s, which the target gives, switches off %s, which the program gives", on.Name, off.Name))
		}
	}
	return notes, nil
}

// Names returns the names of the parameters that may stand at a place, in alphabetical order.
func Names(place Scope) []string {
	var names []string
	for _, o := range table {
		if o.at(place) {
			names = append(names, o.Name)
		}
	}
	slices.Sort(names)
	return names
}

// ParseSettings returns what the parameters of a target say of the policies, such as
// minReady=0.6. It is for tools that have no channel. An unknown name, a bad value and one
// that is given twice are errors, as in a target.
func ParseSettings(given url.Values) (Settings, error) {
	known := slices.DeleteFunc(Names(Channel), func(name string) bool { return name == "authority" }) // it is no policy's
	var g Given
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(known, name) {
			return Settings{}, fmt.Errorf("unknown parameter %s, want one of %s", printable.Quote(name), strings.Join(known, ", "))
		}
		if len(given[name]) != 1 || given[name][0] == "" {
			return Settings{}, fmt.Errorf("not one %s given, but none or several", printable.Line(name, 100))
		}
		if _, err := g.Set(name, given.Get(name), Channel); err != nil {
			return Settings{}, err
		}
	}
	_, err := g.Settle()
	return g.Settings, err
}
