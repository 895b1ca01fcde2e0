package topology

import (
	"encoding/json"
	"fmt"

	"github.com/understudy-lb/understudy/internal/lbconfig"
)

// OutlierDetection is what a cluster says of the outlier detection among the endpoints of
// its priorities (gRFC A50). It does not change once it is made.
type OutlierDetection struct {
	config *lbconfig.OutlierDetection // without a child
	json   string
}

// NewOutlierDetection returns what config says, which has no child and must not change.
func NewOutlierDetection(config *lbconfig.OutlierDetection) *OutlierDetection {
	text, _ := json.Marshal(config) // of numbers, durations and names, which can be encoded
	return &OutlierDetection{config, string(text)}
}

// ParseOutlierDetection reads what JSON returned, or what somebody wrote: the fields of gRPC
// A50's configuration without childPolicy. It returns nil for "".
func ParseOutlierDetection(text string) (*OutlierDetection, error) {
	if text == "" {
		return nil, nil
	}
	fields := make(map[string]json.RawMessage)
	if err := json.Unmarshal([]byte(text), &fields); err != nil || fields == nil {
		return nil, fmt.Errorf("%s: %.100q given, want a JSON object (%v)", outlierDetectionName, text, err)
	}
	fields["childPolicy"] = json.RawMessage(`[{"` + weightedRoundRobinName + `":{}}]`)
	given, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	config := lbconfig.NewOutlierDetection()
	if err := lbconfig.Parse(outlierDetectionName, given, config); err != nil {
		return nil, err
	}
	config.ChildPolicy = lbconfig.Policy{}
	return NewOutlierDetection(config), nil
}

// JSON returns the configuration of the policy, without a child; "" for nil.
func (o *OutlierDetection) JSON() string {
	if o == nil {
		return ""
	}
	return o.json
}

// Equal reports whether o and other say the same. Either may be nil, for a cluster that
// says nothing.
func (o *OutlierDetection) Equal(other *OutlierDetection) bool {
	if o == nil || other == nil {
		return o == other
	}
	return o.json == other.json
}
