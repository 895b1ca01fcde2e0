// Package svcconfig joins the user's service config with the load-balancing
// configuration that a resolver makes.
//
// gRPC merges nothing: a service config of a resolver replaces the user's default one
// whole, retry policies and health checks included. So each resolver gets the user's,
// and sends both as one.
package lbconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// ours holds the fields that belong to the resolver.
var ours = []string{"loadBalancingConfig", "loadBalancingPolicy"}

// CheckServiceConfig returns what is wrong with user, the user's service config in JSON. It must be
// an object, and leave load balancing to the resolver. The empty string means none.
// gRPC checks the other fields.
func CheckServiceConfig(user string) error {
	_, err := parse(user)
	return err
}

// MergeServiceConfig returns user with lbConfig, a list of policies, as its loadBalancingConfig, in
// JSON. It returns the error of CheckServiceConfig.
func MergeServiceConfig(user string, lbConfig json.RawMessage) (string, error) {
	fields, err := parse(user)
	if err != nil {
		return "", err
	}
	fields["loadBalancingConfig"] = lbConfig
	merged, err := json.Marshal(fields)
	if err != nil {
		return "", fmt.Errorf("service config: %w", err)
	}
	return string(merged), nil
}

func parse(user string) (map[string]json.RawMessage, error) {
	fields := make(map[string]json.RawMessage)
	if user == "" {
		return fields, nil
	}
	decoder := json.NewDecoder(bytes.NewReader([]byte(user)))
	if err := decoder.Decode(&fields); err != nil {
		return nil, fmt.Errorf(`service config: want a JSON object such as {"methodConfig": […]}: %w`, err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("service config: more follows after the JSON object")
	}
	if fields == nil {
		return nil, errors.New("service config: want a JSON object, got null")
	}
	for name := range fields {
		// gRPC reads names in any case.
		if slices.ContainsFunc(ours, func(o string) bool { return strings.EqualFold(o, name) }) {
			return nil, fmt.Errorf("service config: %s is set by the resolver and must be left out", name)
		}
	}
	return fields, nil
}
