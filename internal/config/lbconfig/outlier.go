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

// OutlierDetection configures understudy_outlier_detection (gRFC A50, "LB Policy Config"). Without
// an ejection algorithm, the policy does nothing.
type OutlierDetection struct {
	serviceconfig.LoadBalancingConfig `json:"-"`

	Interval                    Duration                     `json:"interval"`
	BaseEjectionTime            Duration                     `json:"baseEjectionTime"`
	MaxEjectionTime             Duration                     `json:"maxEjectionTime"`
	MaxEjectionPercent          uint32                       `json:"maxEjectionPercent"`
	SuccessRateEjection         *SuccessRateEjection         `json:"successRateEjection,omitempty"`
	FailurePercentageEjection   *FailurePercentageEjection   `json:"failurePercentageEjection,omitempty"`
	ConsecutiveFailuresEjection *ConsecutiveFailuresEjection `json:"consecutiveFailuresEjection,omitempty"`
	FailureCodes                []Code                       `json:"failureCodes,omitempty"` // if empty, the default codes count as failures
	ChildPolicy                 Policy                       `json:"childPolicy"`
}

// MinInterval is the minimum of Interval. With many endpoints, shorter intervals would keep a CPU
// core busy.
const MinInterval = time.Millisecond

// SuccessRateEjection ejects endpoints whose success rate is an outlier.
type SuccessRateEjection struct {
	StdevFactor           uint32 `json:"stdevFactor"` // in thousandths
	EnforcementPercentage uint32 `json:"enforcementPercentage"`
	MinimumHosts          uint32 `json:"minimumHosts"`
	RequestVolume         uint32 `json:"requestVolume"`
}

// FailurePercentageEjection ejects endpoints whose percentage of failed calls exceeds Threshold,
// regardless of other endpoints.
type FailurePercentageEjection struct {
	Threshold             uint32 `json:"threshold"`
	EnforcementPercentage uint32 `json:"enforcementPercentage"`
	MinimumHosts          uint32 `json:"minimumHosts"`
	RequestVolume         uint32 `json:"requestVolume"`
}

// ConsecutiveFailuresEjection ejects an endpoint after a number of failed calls in a row.
type ConsecutiveFailuresEjection struct {
	Failures              uint32 `json:"failures"`
	EnforcementPercentage uint32 `json:"enforcementPercentage"`
}

// Code is the name of a status code other than OK, such as "UNAVAILABLE".
type Code string

// Value returns the code with the name c. ok is false if there is no such code, or if it is OK.
func (c Code) Value() (code codes.Code, ok bool) {
	err := code.UnmarshalJSON([]byte(strconv.Quote(string(c))))
	return code, err == nil && code != codes.OK
}

// NewOutlierDetection returns the defaults, which eject nothing.
func NewOutlierDetection() *OutlierDetection {
	o := &OutlierDetection{}
	o.setDefaults()
	return o
}

// NewSuccessRateEjection returns the defaults.
func NewSuccessRateEjection() *SuccessRateEjection {
	s := &SuccessRateEjection{}
	s.setDefaults()
	return s
}

// NewFailurePercentageEjection returns the defaults.
func NewFailurePercentageEjection() *FailurePercentageEjection {
	f := &FailurePercentageEjection{}
	f.setDefaults()
	return f
}

// NewConsecutiveFailuresEjection returns the defaults.
func NewConsecutiveFailuresEjection() *ConsecutiveFailuresEjection {
	c := &ConsecutiveFailuresEjection{}
	c.setDefaults()
	return c
}

func (o *OutlierDetection) setDefaults() {
	*o = OutlierDetection{
		Interval:           Duration(10 * time.Second),
		BaseEjectionTime:   Duration(30 * time.Second),
		MaxEjectionTime:    Duration(300 * time.Second),
		MaxEjectionPercent: 10,
	}
}

func (s *SuccessRateEjection) setDefaults() {
	*s = SuccessRateEjection{StdevFactor: 1900, EnforcementPercentage: 100, MinimumHosts: 5, RequestVolume: 100}
}

func (f *FailurePercentageEjection) setDefaults() {
	*f = FailurePercentageEjection{Threshold: 85, EnforcementPercentage: 100, MinimumHosts: 5, RequestVolume: 50}
}

func (c *ConsecutiveFailuresEjection) setDefaults() {
	*c = ConsecutiveFailuresEjection{Failures: 5, EnforcementPercentage: 100}
}

// Ejects reports whether any ejection algorithm is configured.
func (o *OutlierDetection) Ejects() bool {
	return o.SuccessRateEjection != nil || o.FailurePercentageEjection != nil || o.ConsecutiveFailuresEjection != nil
}

func (o *OutlierDetection) check(path string) error {
	if err := checkPercentage(path, "maxEjectionPercent", o.MaxEjectionPercent); err != nil {
		return err
	}
	if err := o.ChildPolicy.required(join(path, "childPolicy")); err != nil {
		return err
	}
	if !o.Ejects() {
		return nil
	}
	if time.Duration(o.Interval) < MinInterval {
		return withPath(join(path, "interval"), fmt.Errorf(`%q given, want a duration of 1ms and more, such as "10s"`, time.Duration(o.Interval)))
	}
	if name, found := barePickFirst(o.ChildPolicy); found {
		return withPath(join(path, "childPolicy"), fmt.Errorf("%s given, which would not notice that an endpoint is ejected; want a policy that has a pick_first of its own for each endpoint, such as understudy_weighted_round_robin", name))
	}
	return nil
}

func (s *SuccessRateEjection) check(path string) error {
	return checkPercentage(path, "enforcementPercentage", s.EnforcementPercentage)
}

func (f *FailurePercentageEjection) check(path string) error {
	if err := checkPercentage(path, "threshold", f.Threshold); err != nil {
		return err
	}
	return checkPercentage(path, "enforcementPercentage", f.EnforcementPercentage)
}

func (c *ConsecutiveFailuresEjection) check(path string) error {
	if c.Failures == 0 {
		return withPath(join(path, "failures"), fmt.Errorf("0 given, want 1 or more"))
	}
	return checkPercentage(path, "enforcementPercentage", c.EnforcementPercentage)
}

func (c *Code) check(path string) error {
	if _, ok := c.Value(); !ok {
		return withPath(path, fmt.Errorf(`%q given, want the name of a status code other than OK, such as "UNAVAILABLE"`, *c))
	}
	return nil
}

func checkPercentage(path, field string, given uint32) error {
	if given > 100 {
		return withPath(join(path, field), fmt.Errorf("%d given, want 0 to 100", given))
	}
	return nil
}

// barePickFirst reports whether p is, or contains, a pick_first for several endpoints. Outlier
// detection cannot eject such endpoints, because this pick_first does not listen to their health.
// name consists of the name of the pick_first and the names of the policies above it.
func barePickFirst(p Policy) (name string, found bool) {
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
		if name, found = barePickFirst(policy); found {
			return name + " below " + p.Name(), true
		}
	}
	return "", false
}
