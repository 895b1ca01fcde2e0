package options

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/understudy-lb/understudy/internal/net/location"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

func (o Option) parse(text string) (value any, err error) {
	switch o.Kind {
	case Duration:
		value, err = time.ParseDuration(text)
	case Count:
		value, err = strconv.Atoi(text)
	case Bool, Toggle:
		value, err = strconv.ParseBool(text)
	default:
		return text, o.checkText(text)
	}
	if err != nil {
		return nil, fmt.Errorf("%s given, want %s", printable.Quote(text), kindText[o.Kind])
	}
	return value, o.check(value)
}

func (o Option) check(value any) error {
	switch v := value.(type) {
	case string:
		return o.checkText(v)
	case EndpointPolicy:
		return v.check()
	}
	n, numeric := number(value)
	if !numeric || n >= o.Min && (n <= o.Max || o.Max == 0) || n == 0 && o.AllowZero {
		return nil
	}
	return fmt.Errorf("%v given, want %s", value, o.wantText())
}

func (o Option) checkText(text string) error {
	if o.Kind == Choice && !slices.Contains(o.Choices, text) {
		return fmt.Errorf("%s given, want one of %s", printable.Quote(text), strings.Join(o.Choices, ", "))
	}
	if o.Kind == Policy {
		return EndpointPolicy(text).check()
	}
	if o.Kind == Name {
		if problem := location.Problem(text); problem != "" {
			return errors.New(problem)
		}
	}
	return nil
}

func (o Option) wantText() string {
	minimum, maximum := fmt.Sprint(o.Min), fmt.Sprint(o.Max)
	text := "a number "
	if o.Kind == Duration {
		text = kindText[Duration] + ", "
		minimum, maximum = seconds(o.Min).String(), seconds(o.Max).String()
	}
	switch {
	case o.Kind == Count && o.Max > 0:
		return minimum + " to " + maximum
	case o.Max > 0:
		text += "from " + minimum + " to " + maximum
	case o.Min > 0 && o.Min < 1:
		text += "of more than 0s"
	case o.Kind == Count:
		return minimum + " and more"
	default:
		text += "of " + minimum + " and more"
	}
	if o.AllowZero {
		text += ", or 0s for none"
	}
	return text
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func number(value any) (n float64, ok bool) {
	v := reflect.ValueOf(value)
	switch {
	case value == nil:
		return 0, false
	case v.CanInt() && v.Type().ConvertibleTo(reflect.TypeFor[time.Duration]()) && v.Kind() == reflect.Int64:
		return time.Duration(v.Int()).Seconds(), true
	case v.CanInt():
		return float64(v.Int()), true
	case v.CanUint():
		return float64(v.Uint()), true
	case v.CanFloat():
		return v.Float(), true
	}
	return 0, false
}
