package lbtest

import (
	"encoding/json"
	"strings"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/lb/stateattr"
)

func JSON(config any) string {
	text, err := json.Marshal([]map[string]any{{"understudy_priority": config}})
	if err != nil {
		panic(err)
	}
	return string(text)
}

// StateJSON returns the service config of a resolver's state. text is what the resolver passed to
// ParseServiceConfig. The configuration in there is empty, so we replace it with the one in the
// state.
func StateJSON(state resolver.State, text string) string {
	config, _ := stateattr.TakeConfig(state)
	return strings.Replace(text, `[{"understudy_priority":{}}]`, JSON(config), 1)
}
