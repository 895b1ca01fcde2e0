package lbconfig

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/serviceconfig"
)

// OutlierDetection configures understudy_outlier_detection (gRFC A50, "LB Policy Config"). Unless
// it has an ejection algorithm, the policy does nothing.
type OutlierDetection struct {
	serviceconfig.LoadBalancingConfig `json:"-"`

	Interval                    Duration                     `json:"interval" default:"10s"`
	BaseEjectionTime            Duration                     `json:"baseEjectionTime" default:"30s"`
	MaxEjectionTime             Duration                     `json:"maxEjectionTime" default:"300s"`
	MaxEjectionPercent          uint32                       `json:"maxEjectionPercent" default:"10" max:"100" want:"0 to 100"`
	SuccessRateEjection         *SuccessRateEjection         `json:"successRateEjection,omitempty"`
	FailurePercentageEjection   *FailurePercentageEjection   `json:"failurePercentageEjection,omitempty"`
	ConsecutiveFailuresEjection *ConsecutiveFailuresEjection `json:"consecutiveFailuresEjection,omitempty"`
	FailureCodes                []Code                       `json:"failureCodes,omitempty"` // if empty, we use the default codes
	ChildPolicy                 Policy                       `json:"childPolicy"`
}

// MinInterval is the minimum of Interval. Anything shorter would keep a CPU core busy once there
// are many endpoints.
const MinInterval = time.Millisecond

type SuccessRateEjection struct {
	StdevFactor           uint32 `json:"stdevFactor" default:"1900"` // thousandths
	EnforcementPercentage uint32 `json:"enforcementPercentage" default:"100" max:"100" want:"0 to 100"`
	MinimumHosts          uint32 `json:"minimumHosts" default:"5"`
	RequestVolume         uint32 `json:"requestVolume" default:"100"`
}

// FailurePercentageEjection ejects endpoints whose percentage of failed calls is above Threshold,
// no matter how the other endpoints are doing.
type FailurePercentageEjection struct {
	Threshold             uint32 `json:"threshold" default:"85" max:"100" want:"0 to 100"`
	EnforcementPercentage uint32 `json:"enforcementPercentage" default:"100" max:"100" want:"0 to 100"`
	MinimumHosts          uint32 `json:"minimumHosts" default:"5"`
	RequestVolume         uint32 `json:"requestVolume" default:"50"`
}

type ConsecutiveFailuresEjection struct {
	Failures              uint32 `json:"failures" default:"5" want:"1 or more"`
	EnforcementPercentage uint32 `json:"enforcementPercentage" default:"100" max:"100" want:"0 to 100"`
}

// Code is the name of a status code other than OK, e.g. "UNAVAILABLE".
type Code string

// Value returns the status code. ok is false if there's no code of that name, or if it's OK.
func (c Code) Value() (code codes.Code, ok bool) {
	err := code.UnmarshalJSON([]byte(strconv.Quote(string(c))))
	return code, err == nil && code != codes.OK
}

func (o *OutlierDetection) Ejects() bool {
	return o.SuccessRateEjection != nil || o.FailurePercentageEjection != nil || o.ConsecutiveFailuresEjection != nil
}

func (o *OutlierDetection) check() error {
	if !o.Ejects() {
		return nil
	}
	if time.Duration(o.Interval) < MinInterval {
		return fmt.Errorf(`interval: %q given, want a duration of 1ms and more, such as "10s"`, time.Duration(o.Interval))
	}
	if name, found := BarePickFirst(o.ChildPolicy); found {
		return fmt.Errorf("childPolicy: %s given, which would not notice that an endpoint is ejected; want a policy that has a pick_first of its own for each endpoint, such as understudy_weighted_round_robin", name)
	}
	return nil
}

func (c *Code) check() error {
	if _, ok := c.Value(); !ok {
		return fmt.Errorf(`%q given, want the name of a status code other than OK, such as "UNAVAILABLE"`, *c)
	}
	return nil
}

// BarePickFirst looks for a pick_first in p that has several endpoints. Such a pick_first doesn't
// listen to their health, so outlier detection couldn't eject any of them. If there's one, name is
// the path from it up to p.
func BarePickFirst(p Policy) (name string, found bool) {
	if p.Name() == "pick_first" || p.Name() == "understudy_pick_first" {
		return p.Name(), true
	}
	var children []Policy
	switch c := p.Config.(type) {
	case *Drop:
		children = append(children, c.ChildPolicy)
	case *EndpointPolicy:
		children = append(children, c.ChildPolicy)
	case *OutlierDetection:
		children = append(children, c.ChildPolicy)
	case *Priority:
		for _, child := range c.Children {
			children = append(children, child.Config)
		}
	case *WeightedTarget:
		for _, target := range c.Targets {
			children = append(children, target.ChildPolicy)
		}
	}
	slices.SortFunc(children, func(a, b Policy) int { return strings.Compare(a.Name(), b.Name()) })
	for _, policy := range children {
		if name, found = BarePickFirst(policy); found {
			return name + " below " + p.Name(), true
		}
	}
	return "", false
}
