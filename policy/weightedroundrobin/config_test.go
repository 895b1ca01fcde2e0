package weightedroundrobin

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"google.golang.org/grpc/balancer"

	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

func TestParseConfig(t *testing.T) {
	tests := map[string]*lbconfig.WeightedRoundRobin{
		`{}`:                       {StartPoint: lbconfig.StartSpec},
		`{"startPoint": "spec"}`:   {StartPoint: lbconfig.StartSpec},
		`{"startPoint": "random"}`: {StartPoint: lbconfig.StartRandom},
		`{"startPoint": null, "slowStart": null, "unknown": [1]}`: {StartPoint: lbconfig.StartSpec},
		`{"slowStart": {"window": "30s", "unknown": 1}}`: {StartPoint: lbconfig.StartSpec, SlowStart: &lbconfig.SlowStart{
			Window: lbconfig.Duration(30 * time.Second), Aggression: 1, MinWeightPercent: 10}},
		`{"slowStart": {"window": "0.5s", "aggression": 2.5, "minWeightPercent": 0}}`: {StartPoint: lbconfig.StartSpec, SlowStart: &lbconfig.SlowStart{
			Window: lbconfig.Duration(time.Second / 2), Aggression: 2.5, MinWeightPercent: 0}},
	}
	parser := balancer.Get(Name).(balancer.ConfigParser)
	for raw, want := range tests {
		got, err := parser.ParseConfig([]byte(raw))
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s parsed as %+v, want %+v", raw, got, want)
		}
		if _, last := lbtest.CheckRoundTrips(t, newBuilder(Name), raw); !reflect.DeepEqual(last, want) {
			t.Errorf("%s became %+v", raw, last)
		}
	}
}

func FuzzParseConfig(f *testing.F) {
	f.Add(`{"startPoint": "random", "slowStart": {"window": "30s", "aggression": 1.5, "minWeightPercent": 0}}`)
	f.Add(`{"slowStart": {"window": "0.000000001s"}}`)
	f.Fuzz(func(t *testing.T, raw string) {
		c, err := parseConfig([]byte(raw))
		if err != nil {
			return
		}
		again, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := parseConfig(again); err != nil || !reflect.DeepEqual(got, c) {
			t.Errorf("%s became %s, which parses as %+v, %v", raw, again, got, err)
		}
		if s := coreConfig(c).SlowStart; c.SlowStart != nil {
			if factor := s.Factor(0); !(factor >= 0 && factor <= 1) || s.Step() <= 0 {
				t.Errorf("%s: factor %v, step %v", raw, factor, s.Step())
			}
		}
	})
}

func parseConfig(raw []byte) (*lbconfig.WeightedRoundRobin, error) {
	c, err := newBuilder(Name).(balancer.ConfigParser).ParseConfig(raw)
	if err != nil {
		return nil, err
	}
	return c.(*lbconfig.WeightedRoundRobin), nil
}

func TestParseConfigNamesTheField(t *testing.T) {
	lbtest.CheckConfigErrors(t, newBuilder(Name), "weighted_round_robin: ", map[string]string{
		`[]`:                               "[] given, want a JSON object",
		``:                                 "nothing given, want a JSON object",
		`{"startPoint": "middle"}`:         `startPoint: "middle" given, want "spec" or "random"`,
		`{"startPoint": 1}`:                `startPoint: 1 given, want a string`,
		`{"slowStart": true}`:              `slowStart: true given, want a JSON object`,
		`{"slowStart": {}}`:                `slowStart.window: "0s" or none given, want a positive duration such as "30s"`,
		`{"slowStart": {"window": 3}}`:     `slowStart.window: 3 given, want a duration`,
		`{"slowStart": {"window": "0s"}}`:  `slowStart.window: "0s" or none given`,
		`{"slowStart": {"window": "-1s"}}`: `slowStart.window: `,
		`{"slowStart": {"window": "1s", "aggression": 0}}`:            `slowStart.aggression: 0 given, want a number above 0`,
		`{"slowStart": {"window": "1s", "aggression": "1"}}`:          `slowStart.aggression: "1" given, want a number`,
		`{"slowStart": {"window": "1s", "minWeightPercent": 100.5}}`:  `slowStart.minWeightPercent: 100.5 given, want a number from 0 to 100`,
		`{"slowStart": {"window": "1s", "minWeightPercent": -0.001}}`: `slowStart.minWeightPercent: -0.001 given`,
	})
}
