package outlierdetection

import (
	"errors"
	"fmt"
	"testing"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	core "github.com/understudy-lb/understudy/internal/core/outlierdetection"
	"github.com/understudy-lb/understudy/internal/testing/outlierscenario"
)

func doneInfo(code codes.Code, sent, received bool) balancer.DoneInfo {
	return balancer.DoneInfo{Err: status.Error(code, ""), BytesSent: sent, BytesReceived: received}
}

func TestCallResults(t *testing.T) {
	for _, test := range []struct {
		name string
		info balancer.DoneInfo
		want callResult
	}{
		{"an answer", doneInfo(codes.OK, true, true), success},
		{"an error status that is not a failure", doneInfo(codes.NotFound, true, true), success},
		{"a server's RESOURCE_EXHAUSTED", doneInfo(codes.ResourceExhausted, true, true), failure},
		{"the client's own size limit", doneInfo(codes.ResourceExhausted, true, false), inconclusive},
		{"a message that cannot be marshaled", doneInfo(codes.Internal, true, false), inconclusive},
		{"a server's INTERNAL", doneInfo(codes.Internal, true, true), failure},
		{"a server's UNKNOWN", doneInfo(codes.Unknown, true, true), failure},
		{"a client error without a status", balancer.DoneInfo{Err: errors.New("x"), BytesSent: true}, inconclusive},
		{"a token source that fails before the call is sent", doneInfo(codes.Unavailable, false, false), inconclusive},
		{"a server that hangs", doneInfo(codes.DeadlineExceeded, true, false), failure},
		{"a server that hangs after its first bytes", doneInfo(codes.DeadlineExceeded, true, true), failure},
		{"a lost connection", doneInfo(codes.Unavailable, true, false), failure},
		{"lost data", doneInfo(codes.DataLoss, true, false), failure},
		{"a client that cancels", doneInfo(codes.Canceled, true, false), inconclusive},
		{"a client that cancels a stream after an answer", doneInfo(codes.Canceled, true, true), success},
		{"a pick of a connection that was just lost", balancer.DoneInfo{}, inconclusive},
		{"neither an answer nor an error", doneInfo(codes.OK, true, false), inconclusive},
		{"an undefined code", doneInfo(99, true, true), success},
	} {
		c := lbconfig.New[lbconfig.OutlierDetection]()
		c.ConsecutiveFailuresEjection = lbconfig.New[lbconfig.ConsecutiveFailuresEjection]()
		if got := rulesOf(c).of(&test.info); got != test.want {
			t.Errorf("%s: verdict %d, want %d", test.name, got, test.want)
		}
	}
}

func TestFailureCodes(t *testing.T) {
	c := lbconfig.New[lbconfig.OutlierDetection]()
	c.ConsecutiveFailuresEjection = lbconfig.New[lbconfig.ConsecutiveFailuresEjection]()
	c.FailureCodes = []lbconfig.Code{"NOT_FOUND", "CANCELLED", "UNAVAILABLE"}
	r := rulesOf(c)
	for info, want := range map[*balancer.DoneInfo]callResult{
		{Err: status.Error(codes.NotFound, ""), BytesSent: true, BytesReceived: true}: failure,
		{Err: status.Error(codes.NotFound, ""), BytesSent: true}:                      inconclusive,
		{Err: status.Error(codes.Canceled, ""), BytesSent: true, BytesReceived: true}: failure,
		{Err: status.Error(codes.Canceled, ""), BytesSent: true}:                      inconclusive,
		{Err: status.Error(codes.Unavailable, ""), BytesSent: true}:                   failure,
		{Err: status.Error(codes.Internal, ""), BytesSent: true, BytesReceived: true}: success,
		{Err: status.Error(codes.DeadlineExceeded, ""), BytesSent: true}:              inconclusive,
	} {
		if got := r.of(info); got != want {
			t.Errorf("%v, sent %v, received %v: verdict %d, want %d", info.Err, info.BytesSent, info.BytesReceived, got, want)
		}
	}
}

func TestInconclusiveCallsAreNotCounted(t *testing.T) {
	inBubble(t, func(h *harness) {
		config := outlierscenario.Default()
		config.ConsecutiveFailuresEjection = &core.ConsecutiveFailuresEjection{Failures: 5, EnforcementPercentage: 100}
		h.Update(config, []string{"a", "b"})
		for range 100 {
			h.end("a", balancer.DoneInfo{})
			h.end("a", doneInfo(codes.Internal, true, false))
			h.end("a", doneInfo(codes.Unavailable, false, false))
			h.end("a", doneInfo(codes.Canceled, true, false))
		}
		h.wantReceived()
		for i := range 5 {
			h.wantReceived()
			h.end("a", doneInfo(codes.DeadlineExceeded, true, false))
			if i < 4 {
				h.end("a", balancer.DoneInfo{})
			}
		}
		h.wantReceived("a TRANSIENT_FAILURE")
	})
}

// swap must clear the counts of successes and failures, but keep the count of consecutive failures.
// reset must clear all counts.
func TestCounter(t *testing.T) {
	var c counter
	c.successes.Add(3)
	c.failures.Add(4)
	c.consecutive.Add(4)
	if s, f := c.swap(); s != 3 || f != 4 || c.consecutive.Load() != 4 {
		t.Errorf("counted %d and %d, and %d in a row; want 3, 4 and 4", s, f, c.consecutive.Load())
	}
	if s, f := c.swap(); s != 0 || f != 0 {
		t.Errorf("a second swap returned %d and %d, want 0", s, f)
	}
	c.failures.Add(1)
	if c.reset(); c.consecutive.Load() != 0 || c.failures.Load() != 0 {
		t.Error("reset did not clear all counts")
	}
}

func TestConfigErrors(t *testing.T) {
	const child = `"childPolicy": [{"understudy_weighted_round_robin": {}}]`
	parser := newBuilder(Name).(balancer.ConfigParser)
	for raw, want := range map[string]string{
		`{}`:                                 "childPolicy: none given, want a list of policies, [{\"name\": {…}}]",
		`{"interval": "-1s", ` + child + `}`: `interval: "-1s" given, want a duration such as "10s" that is not negative`,
		`{"baseEjectionTime": "300y", ` + child + `}`:                                                       `baseEjectionTime: "300y" given, want a duration such as "10s"`,
		`{"maxEjectionTime": "9999999999999s", ` + child + `}`:                                              `maxEjectionTime: "9999999999999s" given, want a duration such as "10s"`,
		`{"maxEjectionPercent": 101, ` + child + `}`:                                                        "maxEjectionPercent: 101 given, want 0 to 100",
		`{"successRateEjection": {"enforcementPercentage": 101}, ` + child + `}`:                            "successRateEjection.enforcementPercentage: 101 given, want 0 to 100",
		`{"failurePercentageEjection": {"threshold": 101}, ` + child + `}`:                                  "failurePercentageEjection.threshold: 101 given, want 0 to 100",
		`{"failurePercentageEjection": {"enforcementPercentage": 101}, ` + child + `}`:                      "failurePercentageEjection.enforcementPercentage: 101 given, want 0 to 100",
		`{"consecutiveFailuresEjection": {"failures": 0}, ` + child + `}`:                                   "consecutiveFailuresEjection.failures: 0 given, want 1 or more",
		`{"consecutiveFailuresEjection": {"enforcementPercentage": 101}, ` + child + `}`:                    "consecutiveFailuresEjection.enforcementPercentage: 101 given, want 0 to 100",
		`{"consecutiveFailuresEjection": {}, "interval": "0s", ` + child + `}`:                              `interval: "0s" given, want a duration of 1ms and more, such as "10s"`,
		`{"consecutiveFailuresEjection": {}, "interval": "1ns", ` + child + `}`:                             `interval: "1ns" given, want a duration of 1ms and more, such as "10s"`,
		`{"failureCodes": ["UNAVAILABLE", "DOWN"], ` + child + `}`:                                          `failureCodes[1]: "DOWN" given, want the name of a status code other than OK, such as "UNAVAILABLE"`,
		`{"failureCodes": ["OK"], ` + child + `}`:                                                           `failureCodes[0]: "OK" given, want the name of a status code other than OK, such as "UNAVAILABLE"`,
		`{"consecutiveFailuresEjection": {}, "childPolicy": [{"understudy_pick_first": {}}]}`:               "childPolicy: understudy_pick_first given, which would not notice that an endpoint is ejected; " + wantPolicy,
		`{"consecutiveFailuresEjection": {}, "childPolicy": ` + fmt.Sprintf(nestedInDrop, "pick_first"):     "childPolicy: pick_first below understudy_weighted_target below understudy_drop given, which would not notice that an endpoint is ejected; " + wantPolicy,
		`{"consecutiveFailuresEjection": {}, "childPolicy": ` + fmt.Sprintf(nestedInPriority, "pick_first"): "childPolicy: pick_first below understudy_priority given, which would not notice that an endpoint is ejected; " + wantPolicy,
	} {
		if _, err := parser.ParseConfig([]byte(raw)); err == nil || err.Error() != "outlier_detection: "+want {
			t.Errorf("%s: error %v, want %s", raw, err, want)
		}
	}
	for _, raw := range []string{
		`{"childPolicy": [{"pick_first": {}}]}`, // any child is allowed, because no ejection algorithm is configured
		`{"interval": "0s", ` + child + `}`,
		`{"consecutiveFailuresEjection": {}, "interval": "1ms", ` + child + `}`,
		`{"interval": "315576000000s", ` + child + `}`, // 10,000 years, the longest duration, means that A50 is disabled
		`{"consecutiveFailuresEjection": {}, "interval": "315576000000s", ` + child + `}`,
		`{"consecutiveFailuresEjection": {}, "childPolicy": ` + fmt.Sprintf(nestedInDrop, "understudy_weighted_round_robin"),
		`{"consecutiveFailuresEjection": {}, "childPolicy": ` + fmt.Sprintf(nestedInPriority, "understudy_weighted_round_robin"),
	} {
		if _, err := parser.ParseConfig([]byte(raw)); err != nil {
			t.Errorf("%s: error %v", raw, err)
		}
	}
}

const (
	wantPolicy       = "want a policy that has a pick_first of its own for each endpoint, such as understudy_weighted_round_robin"
	nestedInPriority = `[{"understudy_priority": {"priorities": ["x"], "children": {"x": {"config": [{%q: {}}]}}}}]}`
	nestedInDrop     = `[{"understudy_drop": {"childPolicy": [{"understudy_weighted_target": {"targets": {"x": {"weight": 1, "childPolicy": [{%q: {}}]}}}}]}}]}`
)
