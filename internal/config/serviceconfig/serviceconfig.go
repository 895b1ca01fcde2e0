// Package serviceconfig puts together a channel's service config from what the user wrote and what
// other options add to it.
package serviceconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	_ "google.golang.org/grpc/health" // registers client-side health checking

	"github.com/understudy-lb/understudy/internal/config/lbconfig"
)

const retryPolicy = `{"maxAttempts": 4, "initialBackoff": "0.05s", "maxBackoff": "1s", "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}`

type Options struct {
	ServiceConfig string // what the user wrote, or ""
	RetryMethods  []string
	MaxTokens     float64 // retryThrottling.maxTokens, or 0
	TokenRatio    float64
	HealthCheck   bool
	HealthService string
}

// Make returns the service config, or "" if there's nothing to put in it.
func Make(o Options) (string, error) {
	if err := lbconfig.CheckServiceConfig(o.ServiceConfig); err != nil {
		return "", fmt.Errorf("ServiceConfig: %w", err)
	}
	added := make(map[string]any)
	if methods, err := o.methodConfig(); err != nil {
		return "", err
	} else if methods != nil {
		added["methodConfig"] = methods
	}
	if o.MaxTokens != 0 || o.TokenRatio != 0 {
		added["retryThrottling"] = map[string]float64{"maxTokens": o.MaxTokens, "tokenRatio": o.TokenRatio}
	}
	if o.HealthCheck {
		added["healthCheckConfig"] = map[string]string{"serviceName": o.HealthService}
	} else if o.HealthService != "" {
		return "", fmt.Errorf("HealthService: %q given without HealthCheck, want both or neither", o.HealthService)
	}
	if len(added) == 0 {
		return o.ServiceConfig, nil
	}
	return mergeFields(o.ServiceConfig, added)
}

func (o Options) methodConfig() (entry any, err error) {
	type name struct {
		Service string `json:"service"`
		Method  string `json:"method,omitempty"`
	}
	var names []name
	for i, given := range o.RetryMethods {
		service, method, ok := strings.Cut(strings.TrimPrefix(given, "/"), "/")
		if !ok || service == "" || !strings.HasPrefix(given, "/") || strings.Contains(method, "/") {
			return nil, fmt.Errorf("RetryMethods[%d]: %q given, want /package.Service/Method, or /package.Service/ for all of its methods", i, given)
		}
		names = append(names, name{service, method})
	}
	if names == nil {
		return nil, nil
	}
	return map[string]any{"name": names, "retryPolicy": json.RawMessage(retryPolicy)}, nil
}

// For errors: the option that sets a field of the service config.
var optionOfField = map[string]string{"retryThrottling": "RetryThrottling", "healthCheckConfig": "HealthCheck"}

func mergeFields(config string, added map[string]any) (string, error) {
	// We can append to methodConfig, but anything else must not be set twice.
	all := make(map[string]json.RawMessage)
	if config != "" {
		if err := json.Unmarshal([]byte(config), &all); err != nil {
			return "", fmt.Errorf("ServiceConfig: %w", err)
		}
	}
	for name, value := range added {
		for given, existing := range all { // gRPC ignores the case of field names
			if !strings.EqualFold(given, name) {
				continue
			}
			if name != "methodConfig" {
				return "", fmt.Errorf("ServiceConfig: %s given together with the field %s, want only one of them", given, optionOfField[name])
			}
			var methods []any
			if err := json.Unmarshal(existing, &methods); err != nil {
				return "", fmt.Errorf("ServiceConfig: methodConfig: want a list: %w", err)
			}
			delete(all, given)
			all[name], _ = json.Marshal(append(methods, value))
		}
		if all[name] == nil {
			if name == "methodConfig" {
				value = []any{value}
			}
			encoded, err := json.Marshal(value)
			if err != nil {
				return "", fmt.Errorf("%s: %w", optionOfField[name], err)
			}
			all[name] = encoded
		}
	}
	merged, err := json.Marshal(all)
	return string(merged), err
}

// Check validates config. Since gRPC doesn't export its parser, we create a channel that never
// connects.
func Check(config string) error {
	if config == "" {
		return nil
	}
	cc, err := grpc.NewClient("passthrough:///", grpc.WithDefaultServiceConfig(config), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err == nil {
		return cc.Close()
	}
	if cause := errors.Unwrap(err); cause != nil {
		err = cause
	}
	return fmt.Errorf("ServiceConfig: %w", err)
}
