package options

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/understudy-lb/understudy/internal/net/location"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

const wantDuration = "a duration such as 10s"

func (o Option) set(f reflect.Value, text string) (err error) {
	var value any = text
	want := "true or false"
	switch f.Interface().(type) {
	case time.Duration:
		value, err = time.ParseDuration(text)
		want = wantDuration
	case int:
		value, err = strconv.Atoi(text)
		want = "a whole number such as 1"
	case bool:
		value, err = strconv.ParseBool(text)
	case OutlierDetection:
		var on bool
		on, err = strconv.ParseBool(text)
		value = map[bool]OutlierDetection{true: On, false: Off}[on]
	}
	if err != nil {
		return fmt.Errorf("%s given, want %s", printable.Quote(text), want)
	}
	f.Set(reflect.ValueOf(value).Convert(f.Type()))
	switch {
	case o.AllowZero && f.IsZero():
		f.SetInt(int64(Never))
	case o.Check != nil:
		return o.Check(f.Interface())
	}
	return nil
}

func within[T int | time.Duration](least, most T, want string) func(any) error {
	return func(value any) error {
		if n := value.(T); n < least || n > most {
			return fmt.Errorf("%v given, want %s", n, want)
		}
		return nil
	}
}

func oneOf(choices ...string) func(any) error {
	return func(value any) error {
		if text := value.(string); !slices.Contains(choices, text) {
			return fmt.Errorf("%s given, want one of %s", printable.Quote(text), strings.Join(choices, ", "))
		}
		return nil
	}
}

func isName(value any) error { return location.Check(value.(string)) }

func isPolicy(value any) error { return value.(EndpointPolicy).check() }
