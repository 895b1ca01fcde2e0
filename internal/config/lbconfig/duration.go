package lbconfig

import (
	"encoding/json"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Duration is a time.Duration that's encoded in JSON like protobuf's Duration: a string of seconds
// with up to nine fractional digits, e.g. "10s" or "0.25s". When parsing, we also accept Go's
// format, such as "15m" and "250ms". Negative durations are an error. If a duration is too long for
// time.Duration, it's capped at the longest one (about 292 years).
type Duration time.Duration

func (d Duration) MarshalJSON() ([]byte, error) {
	return protojson.Marshal(durationpb.New(time.Duration(d)))
}

func (d *Duration) UnmarshalJSON(data []byte) error {
	const want = `a duration such as "10s"`
	var text string
	_ = json.Unmarshal(data, &text) // if it isn't a string, ParseDuration fails on ""
	v, err := time.ParseDuration(text)
	var given durationpb.Duration
	if protojson.Unmarshal(data, &given) == nil {
		v, err = given.AsDuration(), nil // AsDuration saturates, so there's no overflow
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
