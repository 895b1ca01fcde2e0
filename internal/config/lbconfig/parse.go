package lbconfig

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/grpc/grpclog"
)

// Parse decodes a policy's configuration, checks it and stores it in to. T is one of the
// configuration types in this package. Fields that are missing or null get their defaults. Names
// aren't case-sensitive (gRPC's own policies don't care either), and unknown fields are ignored but
// logged once.
//
// Fields of type Policy are required. For all others, tags say what the default and the range are:
//
//	default:"10s"               otherwise the default is zero
//	want:"1 or more"            more than zero, in the words of the error
//	want:"0 to 100" max:"100"   from zero to max
//
// Errors are a single line with the policy, the path of the field, what was given and what was
// expected, e.g.
//
//	priority: children["near"].config: none given, want a list of policies, [{"name": {…}}]
func Parse[T any](policy string, raw json.RawMessage, to *T) error {
	d := decoder{policy}
	if err := d.decode(raw, reflect.ValueOf(to).Elem(), ""); err != nil {
		return &Error{policy, err}
	}
	return nil
}

// Error is the type of all errors returned by Parse.
type Error struct {
	policy string
	err    error
}

func (e *Error) Error() string { return e.policy + ": " + e.err.Error() }
func (e *Error) Unwrap() error { return e.err }

// New returns a configuration with all defaults set.
func New[T any]() *T {
	c := new(T)
	setDefaults(reflect.ValueOf(c).Elem())
	return c
}

func setDefaults(v reflect.Value) {
	for _, f := range fields(v.Type()) {
		v.Field(f.index).Set(f.initial)
	}
}

type checker interface{ check() error }

type decoder struct{ policy string }

func (d decoder) decode(raw json.RawMessage, v reflect.Value, path string) error {
	if u, ok := v.Addr().Interface().(json.Unmarshaler); ok {
		return withPath(path, u.UnmarshalJSON(raw))
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
		err = withPath(path, c.check())
	}
	return err
}

var kinds = map[reflect.Kind]string{
	reflect.Bool:    "true or false",
	reflect.Float64: "a number",
	reflect.String:  "a string",
	reflect.Uint32:  "a whole number from 0 to 4294967295",
}

func (d decoder) decodeStruct(raw json.RawMessage, v reflect.Value, path string) error {
	setDefaults(v)
	known := fields(v.Type())
	err := eachField(raw, path, func(name string, raw json.RawMessage) error {
		i := slices.IndexFunc(known, func(f field) bool { return strings.EqualFold(f.name, name) })
		switch {
		case i < 0:
			d.logUnknown(path, name, v.Type(), known)
		case string(raw) != "null":
			return d.decode(raw, v.Field(known[i].index), join(path, known[i].name))
		}
		return nil
	})
	for _, f := range known {
		if wrong := f.check(v.Field(f.index)); wrong != nil && err == nil {
			err = withPath(join(path, f.name), wrong)
		}
	}
	return err
}

func (d decoder) decodeMap(raw json.RawMessage, v reflect.Value, path string) error {
	v.Set(reflect.MakeMap(v.Type()))
	return eachField(raw, path, func(key string, raw json.RawMessage) error {
		value := reflect.New(v.Type().Elem()).Elem()
		err := d.decode(raw, value, fmt.Sprintf("%s[%q]", path, key))
		v.SetMapIndex(reflect.ValueOf(key), value)
		return err
	})
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

func eachField(raw json.RawMessage, path string, decode func(name string, raw json.RawMessage) error) error {
	var given map[string]json.RawMessage
	if json.Unmarshal(raw, &given) != nil || given == nil {
		return wantError(raw, path, "a JSON object")
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if err := decode(name, given[name]); err != nil {
			return err
		}
	}
	return nil
}

type field struct {
	name    string
	index   int
	initial reflect.Value
	want    string
	max     float64
}

var knownFields sync.Map // caches the tags of each reflect.Type

func fields(t reflect.Type) []field {
	if known, ok := knownFields.Load(t); ok {
		return known.([]field)
	}
	var all []field
	for i := range t.NumField() {
		tag := t.Field(i).Tag
		name, _, _ := strings.Cut(tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		initial := reflect.New(t.Field(i).Type)
		if text := tag.Get("default"); json.Unmarshal([]byte(text), initial.Interface()) != nil && text != "" {
			_ = json.Unmarshal([]byte(strconv.Quote(text)), initial.Interface()) // durations and names aren't quoted in tags
		}
		limit, _ := strconv.Atoi(tag.Get("max"))
		all = append(all, field{name, i, initial.Elem(), tag.Get("want"), float64(limit)})
	}
	knownFields.Store(t, all)
	return all
}

func (f field) check(v reflect.Value) error {
	if v.Type() == reflect.TypeFor[Policy]() && v.IsZero() {
		return errors.New("none given, want " + wantList)
	}
	if f.want == "" {
		return nil
	}
	n := v.Convert(reflect.TypeFor[float64]()).Float()
	if n > 0 && (n <= f.max || f.max == 0) || n == 0 && f.max > 0 {
		return nil
	}
	given, _ := json.Marshal(v.Interface())
	if v.IsZero() && f.initial.IsZero() {
		given = append(given, " or none"...)
	}
	return fmt.Errorf("%s given, want %s", given, f.want)
}

func join(path, name string) string { return strings.TrimPrefix(path+"."+name, ".") }

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
	if len(text) > most {
		return string(text[:most]) + "…"
	}
	return cmp.Or(string(text), "nothing")
}

var logger = grpclog.Component("understudy")

// Configurations are parsed over and over, and the same mistake may be in many localities, so we
// only log an unknown field once.
var loggedFields = struct {
	sync.Mutex
	fields map[string]bool
}{fields: make(map[string]bool)}

const maxLoggedFields = 1000 // a configuration may have any number of unknown names

func shouldLog(field string) bool {
	loggedFields.Lock()
	defer loggedFields.Unlock()
	if loggedFields.fields[field] || len(loggedFields.fields) == maxLoggedFields {
		return false
	}
	loggedFields.fields[field] = true
	return true
}

func (d decoder) logUnknown(path, name string, parent reflect.Type, known []field) {
	name = excerpt([]byte(name))
	if !shouldLog(fmt.Sprint(d.policy, parent, name)) {
		return
	}
	var names []string
	for _, f := range known {
		names = append(names, f.name)
	}
	logger.Warningf("%s: %s: unknown field, ignored; the known fields are %s (logged once)", d.policy, join(path, name), strings.Join(names, ", "))
}
