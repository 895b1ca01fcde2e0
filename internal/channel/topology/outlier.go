package topology

import (
	"encoding/json"
	"fmt"

	"github.com/understudy-lb/understudy/internal/config/lbconfig"
)

// OutlierDetection is the configuration of outlier detection (gRFC A50) that a cluster contains. It
// is immutable.
type OutlierDetection struct {
	config *lbconfig.OutlierDetection
	json   string
}

// NewOutlierDetection wraps a configuration that has no child policy. The caller must not change
// the configuration afterwards.
func NewOutlierDetection(config *lbconfig.OutlierDetection) *OutlierDetection {
	text, _ := json.Marshal(config) // numbers, durations and names are always encoded without an error
	return &OutlierDetection{config, string(text)}
}

// ParseOutlierDetection parses a configuration in the JSON form of gRFC A50, without childPolicy.
// It returns nil for "".
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
	config := lbconfig.New[lbconfig.OutlierDetection]()
	if err := lbconfig.Parse(outlierDetectionName, given, config); err != nil {
		return nil, err
	}
	config.ChildPolicy = lbconfig.Policy{}
	return NewOutlierDetection(config), nil
}

// JSON returns the configuration without a child policy. It returns "" if o is nil.
func (o *OutlierDetection) JSON() string {
	if o == nil {
		return ""
	}
	return o.json
}

// Equal reports whether o and other are equal. nil equals only nil.
func (o *OutlierDetection) Equal(other *OutlierDetection) bool {
	if o == nil || other == nil {
		return o == other
	}
	return o.json == other.json
}
