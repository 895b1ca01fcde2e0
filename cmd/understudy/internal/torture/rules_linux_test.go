//go:build torture

package torture

import (
	"strings"
	"testing"
	"time"
)

var testHealthyHost = host(1, 0)

// testAge is how long ago the judge of a test began.
const testAge = 10 * time.Minute

func newTestJudge(recommended bool) *judge {
	j := &judge{log: newLog(), healthyHost: testHealthyHost, failover: defaultFailover, periods: make(map[string][]*faultPeriod)}
	j.channels = []*channelState{{name: "channel", recommended: recommended, visible: asPublished}}
	j.published, j.changedAt = content{{host(0, 0)}, {host(1, 0)}}, now()-testAge
	return j
}

// addFault records a fault of a host. from and to are how long ago the fault began and ended. If to
// is negative, the fault has not ended.
func (j *judge) addFault(h, name string, from, to time.Duration) {
	for _, k := range kinds {
		if k.name == name {
			t := &faultPeriod{now() - from, forever, k}
			if to >= 0 {
				t.to = now() - to
			}
			j.periods[h] = append(j.periods[h], t)
		}
	}
}

// brokenRule returns the first broken rule, or "".
func (j *judge) brokenRule() string {
	text := strings.Join(j.log.rulesBroken(), "\n")
	_, text, _ = strings.Cut(text, "BROKEN ")
	text, _, _ = strings.Cut(text, ": ")
	return text
}

const (
	second = time.Second
	minute = time.Minute
)

func endedCall(kind, to string, elapsed time.Duration, code string) record {
	r := record{Kind: kind, Start: now() - elapsed, End: now(), Code: code, Failed: code != ""}
	if to != "" {
		r.To, r.Sent = withPort(backendPort, to)[0], r.Start
	}
	return r
}

func waitedCall(to string, elapsed time.Duration) record {
	r := endedCall(waitForReadyCall, to, elapsed, "")
	r.Sent = r.End
	return r
}

// For each rule about calls, there is a call that breaks it, and a similar call that does not.
func TestRules(t *testing.T) {
	const unavailable, late = "Unavailable", "DeadlineExceeded"
	high, low := host(0, 0), host(1, 0)
	for name, test := range map[string]struct {
		recommended bool
		strike      func(*judge)
		call        record
		want        string
	}{
		"answered":                          {call: endedCall(plainCall, high, second, "")},
		"past its deadline":                 {call: endedCall(plainCall, high, 6*second, ""), want: ruleDeadline},
		"past its deadline, a busy machine": {strike: (*judge).busy, call: endedCall(plainCall, high, 6*second, "")},
		"past its deadline, stopped itself": {strike: func(j *judge) { j.addFault("", "client stopped", 5*second, 2*second) }, call: endedCall(plainCall, high, 6*second, "")},
		"a stream past its deadline":        {call: endedCall(streamCall, high, 9*second, ""), want: ruleDeadline},
		"fails without a fault":             {call: endedCall(plainCall, high, second, unavailable), want: ruleHealthy},
		"fails by a fault":                  {strike: func(j *judge) { j.addFault(high, "kill", 10*second, -1) }, call: endedCall(plainCall, high, second, unavailable)},
		"fails by the network":              {strike: func(j *judge) { j.addFault("", "network down", 10*second, -1) }, call: endedCall(plainCall, high, second, unavailable)},
		"fails long after a fault":          {strike: func(j *judge) { j.addFault(high, "kill", minute, 30*second) }, call: endedCall(plainCall, high, second, unavailable), want: ruleHealthy},
		"fails by the fault of another":     {strike: func(j *judge) { j.addFault(low, "kill", 10*second, -1) }, call: endedCall(plainCall, high, second, unavailable), want: ruleHealthy},
		"late without a fault":              {call: endedCall(plainCall, high, 3*second, late), want: ruleHealthy},
		"late, a busy machine":              {strike: (*judge).busy, call: endedCall(plainCall, high, 3*second, late)},
		"fails, an overloaded machine":      {strike: (*judge).overloaded, call: endedCall(plainCall, high, second, unavailable)},
		"unsent":                            {call: endedCall(plainCall, "", second, unavailable), want: ruleWait},
		"unsent, refused for a moment":      {strike: func(j *judge) { j.addFault(high, "kill", 4*second, -1) }, call: endedCall(plainCall, "", second, unavailable)},
		"unsent, refused for a while":       {strike: func(j *judge) { j.addFault(high, "kill", 10*second, -1) }, call: endedCall(plainCall, "", second, unavailable), want: ruleWait},
		"unsent, one of two faults is silent": {strike: func(j *judge) {
			j.addFault(high, "kill", 10*second, -1)
			j.addFault(high, "silent", 9*second, 8*second)
		}, call: endedCall(plainCall, "", second, unavailable)},
		"unsent, a fault has just begun":      {strike: func(j *judge) { j.addFault(high, "silent", 10*second, -1) }, call: endedCall(plainCall, "", second, unavailable)},
		"unsent, a fault began long ago":      {strike: func(j *judge) { j.addFault(high, "kill", minute, -1) }, call: endedCall(plainCall, "", second, unavailable), want: ruleWait},
		"unsent, a fault that A56 ignores":    {strike: func(j *judge) { j.addFault(high, "stop", minute, -1) }, call: endedCall(plainCall, "", second, late)},
		"unsent, a fault that is noticed":     {recommended: true, strike: func(j *judge) { j.addFault(high, "stop", minute, -1) }, call: endedCall(plainCall, "", second, late), want: ruleWait},
		"unsent, a fault not noticed yet":     {recommended: true, strike: func(j *judge) { j.addFault(high, "stop", 30*second, -1) }, call: endedCall(plainCall, "", second, late)},
		"waits while the core works":          {strike: func(j *judge) { j.addFault(high, "kill", 10*second, -1) }, call: endedCall(waitForReadyCall, "", 45*second, late), want: ruleWait},
		"waits while nothing works":           {strike: func(j *judge) { j.addFault("", "network down", 10*second, -1) }, call: endedCall(waitForReadyCall, "", 45*second, late)},
		"waits for a short time":              {strike: func(j *judge) { j.addFault(high, "silent", 13*second, -1) }, call: endedCall(waitForReadyCall, "", 13*second, late)},
		"waits for longer than a timer":       {strike: func(j *judge) { j.addFault(high, "silent", 15*second, -1) }, call: waitedCall(low, 15*second), want: ruleWait},
		"waits for a timer":                   {strike: func(j *judge) { j.addFault(high, "silent", 13*second, -1) }, call: waitedCall(low, 13*second)},
		"waits for each attempt":              {strike: func(j *judge) { j.addFault(high, "crash", 17*second, -1) }, call: waitedCall(low, 17*second)},
		"a lower priority without a fault":    {call: endedCall(plainCall, low, second, ""), want: rulePriority},
		"a lower priority during a fault":     {strike: func(j *judge) { j.addFault(high, "kill", 5*minute, -1) }, call: endedCall(plainCall, low, second, "")},
		"a lower priority just after a fault": {strike: func(j *judge) { j.addFault(high, "kill", 30*second, 20*second) }, call: endedCall(plainCall, low, second, "")},
		"a lower priority long after a fault": {strike: func(j *judge) { j.addFault(high, "kill", 4*minute, 3*minute) }, call: endedCall(plainCall, low, second, ""), want: rulePriority},
		"a lower priority, its share grows":   {recommended: true, strike: func(j *judge) { j.addFault(high, "kill", 4*minute, 3*minute) }, call: endedCall(plainCall, low, second, "")},
	} {
		t.Run(name, func(t *testing.T) {
			j := newTestJudge(test.recommended)
			if test.strike != nil {
				test.strike(j)
			}
			j.addRecord(test.call)
			j.addRecord(record{Kind: kindPulse, End: now()})
			if got := j.brokenRule(); got != test.want {
				t.Errorf("the rule %q is broken, want %q", got, test.want)
			}
		})
	}
}

func (j *judge) busy() {
	j.addPulse(record{Kind: kindPulse, End: now(), Delay: 500 * time.Millisecond})
}

// overloaded records a scheduling delay of more than maxDelay.
func (j *judge) overloaded() {
	j.addPulse(record{Kind: kindPulse, End: now() - 10*second, Delay: 2 * second})
}

// At the end, a channel is calm if calls go to all published endpoints of the highest priority, and
// to no other endpoints.
func TestCalm(t *testing.T) {
	repeat := func(n int, r record) (all []record) {
		for range n {
			all = append(all, r)
		}
		return all
	}
	for name, test := range map[string]struct {
		calls []record
		want  string
	}{
		"calls answered":  {repeat(30, endedCall(plainCall, host(0, 0), second, "")), ""},
		"too few":         {repeat(29, endedCall(plainCall, host(0, 0), second, "")), "there were only 29 calls"},
		"none":            {nil, "there were only 0 calls"},
		"elsewhere":       {repeat(30, endedCall(plainCall, host(1, 0), second, "")), "calls went to map[127.1.1.1:30]"},
		"elsewhere, too":  {append(repeat(30, endedCall(plainCall, host(0, 0), second, "")), endedCall(plainCall, host(1, 0), second, "")), "calls went to map[127.1.0.1:29 127.1.1.1:1]"},
		"one fails":       {append(repeat(30, endedCall(plainCall, host(0, 0), second, "")), endedCall(plainCall, host(0, 0), second, "Unavailable")), "a call to"},
		"one failed once": {append([]record{endedCall(plainCall, host(0, 0), second, "Unavailable")}, repeat(30, endedCall(plainCall, host(0, 0), second, ""))...), ""},
		"too long ago":    {append(repeat(29, endedCall(plainCall, host(0, 0), second, "")), endedCall(plainCall, host(0, 0), 2*minute, "")), "there were only 0 calls"},
	} {
		t.Run(name, func(t *testing.T) {
			j := newTestJudge(false)
			j.channels[0].recent = test.calls
			w := &world{judge: j, log: j.log}
			if got := w.checkPublished(j.channels[0], now()-minute); !strings.HasPrefix(got, test.want) || test.want == "" && got != "" {
				t.Errorf("not calm because %q, want %q", got, test.want)
			}
		})
	}
}
