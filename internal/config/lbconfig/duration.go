package lbconfig

import (
	"encoding/json"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Duration is a time.Duration whose JSON form is a string as in protobuf's Duration: seconds with
// up to nine fractional digits, such as "10s" or "0.25s". Go's forms, such as "15m" and "250ms",
// are accepted, too. A negative duration is an error. A duration that is too long for time.Duration
// becomes the longest one (about 292 years).
type Duration time.Duration

// MarshalJSON returns the duration in protobuf's form.
func (d Duration) MarshalJSON() ([]byte, error) {
	return protojson.Marshal(durationpb.New(time.Duration(d)))
}

// UnmarshalJSON parses a duration in protobuf's form or in Go's.
func (d *Duration) UnmarshalJSON(data []byte) error {
	const want = `a duration such as "10s"`
	var text string
	_ = json.Unmarshal(data, &text) // no text is no duration
	v, err := time.ParseDuration(text)
	var given durationpb.Duration
	if protojson.Unmarshal(data, &given) == nil {
		v, err = given.AsDuration(), nil // AsDuration returns the largest value instead of overflowing
	}
	switch {
	case err != nil:
		return wantError(data, "", want)
	case v < 0:
		return wantError(data, "", want+" that is not negative")
	}
	*d = Duration(v)
	return nil
}
