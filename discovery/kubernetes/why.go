package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/understudy-lb/understudy/internal/text/printable"
)

const (
	servicesAPI = "/api/v1/namespaces/%s/services/%s"
	maxService  = 1 << 20
)

// reason returns the reason why the Services have no slices. It returns "" if the account has no
// permission to get Services, or if the reason is unknown.
func (w *watch) reason(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, reasonTimeout)
	defer cancel()
	var reasons []string
	for name := range strings.SplitSeq(w.services, ",") {
		text := w.reasonFor(ctx, name)
		if text == "" {
			return ""
		}
		reasons = append(reasons, text)
	}
	return strings.Join(reasons, "; ")
}

func (w *watch) reasonFor(ctx context.Context, name string) string {
	body, err := w.client.get(ctx, fmt.Sprintf(servicesAPI, w.namespace, name), url.Values{})
	if s, ok := errors.AsType[*status](err); ok && s.Code == http.StatusNotFound {
		return "there is no Service " + name
	}
	if err != nil {
		return ""
	}
	var service struct {
		Kind string `json:"kind"`
		Spec struct {
			Type         string            `json:"type"`
			ExternalName string            `json:"externalName"`
			Selector     map[string]string `json:"selector"`
		} `json:"spec"`
	}
	switch err := json.NewDecoder(io.LimitReader(body, maxService)).Decode(&service); {
	case err != nil, service.Kind != "Service":
		return ""
	case service.Spec.Type == "ExternalName":
		return fmt.Sprintf("Service %s has the type ExternalName, and no endpoints: it is an alias of %s; want a target for that, such as failover:///%[2]s", name, printable.Line(service.Spec.ExternalName, 253))
	case len(service.Spec.Selector) == 0:
		return "Service " + name + " has no selector, and no EndpointSlices were created for it"
	}
	return "Service " + name + " has no EndpointSlices yet"
}
