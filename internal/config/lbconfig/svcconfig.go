package lbconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// CheckServiceConfig returns an error unless user is a service config in JSON that does not
// configure load balancing. The resolver configures load balancing, and gRPC checks the other
// fields. "" means no service config.
func CheckServiceConfig(user string) error {
	_, err := MergeServiceConfig(user, nil)
	return err
}

// MergeServiceConfig adds lbConfig to the service config user as its loadBalancingConfig, and
// returns the result in JSON. gRPC does not merge service configs: the one from a resolver replaces
// the user's, with retry policies and health checks. So each of our resolvers sends a merged one.
// The errors are those of CheckServiceConfig.
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
		// gRPC ignores the case of field names.
		if strings.EqualFold(name, "loadBalancingConfig") || strings.EqualFold(name, "loadBalancingPolicy") {
			return "", fmt.Errorf("service config: %s is set by the resolver and must be left out", name)
		}
	}
	fields["loadBalancingConfig"] = lbConfig
	merged, err := json.Marshal(fields)
	return string(merged), err
}
