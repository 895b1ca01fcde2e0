package kubernetes

import (
	"fmt"
	"net/url"
	"strings"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/text/printable"
)

// Role returns the YAML manifests of a Role with the permissions that a target of this package
// needs, and of a RoleBinding that grants the Role to a service account. The account is NAME in the
// target's namespace, or NAMESPACE:NAME. The target must contain its namespace.
func Role(target, account string) (string, error) {
	u, err := url.Parse(target)
	if err != nil || u.Scheme != Scheme && u.Scheme != "k8s" {
		return "", fmt.Errorf("target %s: want %s", printable.Quote(target), targetForm)
	}
	q, _, err := parse(resolver.Target{URL: *u})
	if err != nil {
		return "", err
	}
	if q.namespace == "" {
		return "", fmt.Errorf("target %s names no namespace; want %s", printable.Quote(target), targetForm)
	}
	namespace, name, found := strings.Cut(account, ":")
	if !found {
		namespace, name = q.namespace, account
	}
	if !labelPattern.MatchString(namespace) || !labelPattern.MatchString(name) {
		return "", fmt.Errorf("service account %s: want NAME or NAMESPACE:NAME", printable.Quote(account))
	}
	return fmt.Sprintf(`apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: understudy, namespace: %[1]s}
rules:
- apiGroups: [discovery.k8s.io]
  resources: [endpointslices]
  verbs: [list, watch]
# Optional, so that an error says why a Service has no EndpointSlices:
# - apiGroups: [""]
#   resources: [services]
#   verbs: [get]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: understudy-%[3]s, namespace: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: understudy}
subjects:
- {kind: ServiceAccount, name: %[3]s, namespace: %[2]s}
`, q.namespace, namespace, name), nil
}
