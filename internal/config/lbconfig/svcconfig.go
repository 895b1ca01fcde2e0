package lbconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// CheckServiceConfig returns an error if user isn't a JSON object, or if it configures load
// balancing, which is up to the resolver. We leave it to gRPC to check the other fields. "" means
// there's no service config.
func CheckServiceConfig(user string) error {
	_, err := MergeServiceConfig(user, nil)
	return err
}

// MergeServiceConfig adds lbConfig to the user's service config, as its loadBalancingConfig, and
// returns the result in JSON. gRPC doesn't merge service configs. The resolver's replaces the
// user's, including retry policies and health checks, so our resolvers have to send a merged one.
// The errors are the same as for CheckServiceConfig.
func MergeServiceConfig(user string, lbConfig json.RawMessage) (string, error) {
	fields := make(map[string]json.RawMessage)
	if user != "" {
		decoder := json.NewDecoder(strings.NewReader(user))
		if err := decoder.Decode(&fields); err != nil {
			return "", fmt.Errorf(`service config: want a JSON object such as {"methodConfig": […]}: %w`, err)
		}
		if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
			return "", errors.New("service config: data after the JSON object")
		}
		if fields == nil {
			return "", errors.New("service config: want a JSON object, got null")
		}
	}
	for name := range fields {
		// gRPC doesn't care about the case of field names.
		if strings.EqualFold(name, "loadBalancingConfig") || strings.EqualFold(name, "loadBalancingPolicy") {
			return "", fmt.Errorf("service config: %s is set by the resolver and must be left out", name)
		}
	}
	fields["loadBalancingConfig"] = lbConfig
	merged, err := json.Marshal(fields)
	return string(merged), err
}
