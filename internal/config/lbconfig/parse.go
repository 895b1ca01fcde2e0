package lbconfig

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
)

// Parse decodes raw, the configuration of a policy, into to and checks it. T is a configuration
// type of this package. Absent and null fields keep their defaults. The case of names does not
// matter, as in gRPC's own policies. An unknown field is ignored and logged once.
//
// An error is one line with the policy, the path of the field, the given value and the expected
// value, such as
//
//	priority: children["near"].config: none given, want a list of policies, [{"name": {…}}]
func Parse[T any](policy string, raw json.RawMessage, to *T) error {
	d := decoder{policy}
	if err := d.decode(raw, reflect.ValueOf(to).Elem(), ""); err != nil {
		return &Error{policy, err}
	}
	return nil
}

// Error is the type of the errors that Parse returns.
type Error struct {
	policy string
	err    error
}

func (e *Error) Error() string { return e.policy + ": " + e.err.Error() }
func (e *Error) Unwrap() error { return e.err }

type defaulter interface{ setDefaults() }

type checker interface{ check(path string) error }

type decoder struct{ policy string }

// decode decodes raw into v. path is the path of v in the configuration; errors contain it.
func (d decoder) decode(raw json.RawMessage, v reflect.Value, path string) error {
	if u, ok := v.Addr().Interface().(json.Unmarshaler); ok {
		return withPath(path, u.UnmarshalJSON(raw))
	}
	if s, ok := v.Addr().Interface().(defaulter); ok {
		s.setDefaults()
	}
	var err error
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return d.decode(raw, v.Elem(), path)
	case reflect.Struct:
		err = d.decodeStruct(raw, v, path)
	case reflect.Map:
		err = d.decodeMap(raw, v, path)
	case reflect.Slice:
		err = d.decodeSlice(raw, v, path)
	default:
		if string(raw) == "null" || json.Unmarshal(raw, v.Addr().Interface()) != nil {
			err = wantError(raw, path, kinds[v.Kind()])
		}
	}
	if c, ok := v.Addr().Interface().(checker); ok && err == nil {
		err = c.check(path)
	}
	return err
}

// kinds describes the expected JSON value for each Go kind, except for objects and lists.
var kinds = map[reflect.Kind]string{
	reflect.Bool:    "true or false",
	reflect.Float64: "a number",
	reflect.String:  "a string",
	reflect.Uint32:  fmt.Sprintf("a whole number from 0 to %d", uint32(math.MaxUint32)),
}

func (d decoder) decodeStruct(raw json.RawMessage, v reflect.Value, path string) error {
	given, err := object(raw, path)
	if err != nil {
		return err
	}
	known := fields(v.Type())
	for _, name := range slices.Sorted(maps.Keys(given)) {
		i := slices.IndexFunc(known, func(f field) bool { return strings.EqualFold(f.name, name) })
		switch {
		case i < 0:
			d.logUnknown(path, name, v.Type(), known)
		case string(given[name]) == "null":
		default:
			if err := d.decode(given[name], v.Field(known[i].index), join(path, known[i].name)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d decoder) decodeMap(raw json.RawMessage, v reflect.Value, path string) error {
	given, err := object(raw, path)
	if err != nil {
		return err
	}
	v.Set(reflect.MakeMapWithSize(v.Type(), len(given)))
	for _, key := range slices.Sorted(maps.Keys(given)) {
		value := reflect.New(v.Type().Elem()).Elem()
		if err := d.decode(given[key], value, fmt.Sprintf("%s[%q]", path, key)); err != nil {
			return err
		}
		v.SetMapIndex(reflect.ValueOf(key), value)
	}
	return nil
}

func (d decoder) decodeSlice(raw json.RawMessage, v reflect.Value, path string) error {
	var given []json.RawMessage
	if json.Unmarshal(raw, &given) != nil || given == nil {
		return wantError(raw, path, "a JSON list")
	}
	v.Set(reflect.MakeSlice(v.Type(), len(given), len(given)))
	for i := range given {
		if err := d.decode(given[i], v.Index(i), fmt.Sprintf("%s[%d]", path, i)); err != nil {
			return err
		}
	}
	return nil
}

func object(raw json.RawMessage, path string) (map[string]json.RawMessage, error) {
	var given map[string]json.RawMessage
	if json.Unmarshal(raw, &given) != nil || given == nil {
		return nil, wantError(raw, path, "a JSON object")
	}
	return given, nil
}

type field struct {
	name  string
	index int
}

func fields(t reflect.Type) []field {
	var all []field
	for i := range t.NumField() {
		if name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); name != "-" {
			all = append(all, field{name, i})
		}
	}
	return all
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func withPath(path string, err error) error {
	if err == nil || path == "" {
		return err
	}
	return fmt.Errorf("%s: %w", path, err)
}

func wantError(raw json.RawMessage, path, want string) error {
	return withPath(path, fmt.Errorf("%s given, want %s", excerpt(raw), want))
}

func excerpt(raw json.RawMessage) string {
	const most = 80
	text := []rune(strings.ToValidUTF8(strings.Join(strings.Fields(string(raw)), " "), "\uFFFD"))
	switch {
	case len(text) == 0:
		return "nothing"
	case len(text) > most:
		return string(text[:most]) + "…"
	}
	return string(text)
}
