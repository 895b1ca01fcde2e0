package kubernetes_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/understudy-lb/understudy/discovery/kubernetes"
)

func ExampleRole() {
	text, err := kubernetes.Role("kubernetes:///checkout.shop:grpc", "front:storefront")
	fmt.Print(text, err)
	// Output:
	// apiVersion: rbac.authorization.k8s.io/v1
	// kind: Role
	// metadata: {name: understudy, namespace: shop}
	// rules:
	// - apiGroups: [discovery.k8s.io]
	//   resources: [endpointslices]
	//   verbs: [list, watch]
	// # Optional, so that an error says why a Service has no EndpointSlices:
	// # - apiGroups: [""]
	// #   resources: [services]
	// #   verbs: [get]
	// ---
	// apiVersion: rbac.authorization.k8s.io/v1
	// kind: RoleBinding
	// metadata: {name: understudy-storefront, namespace: shop}
	// roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: understudy}
	// subjects:
	// - {kind: ServiceAccount, name: storefront, namespace: front}
	// <nil>
}

func TestInvalidRole(t *testing.T) {
	for given, want := range map[[2]string]string{
		{"dns:///a", "x"}:                          `target "dns:///a": want kubernetes:///`,
		{"kubernetes:///a", "x"}:                   `target "kubernetes:///a" names no namespace`,
		{"kubernetes:///a.b:0", "x"}:               `has the port "0"`,
		{"kubernetes:///a.b", ""}:                  `service account "": want NAME or NAMESPACE:NAME`,
		{"kubernetes:///a.b", "x}\n- {kind: User"}: `service account "x}\n- {kind: User": want`,
	} {
		if _, err := kubernetes.Role(given[0], given[1]); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", given, err, want)
		}
	}
	if text, err := kubernetes.Role("k8s://shop/web:grpc", "default"); err != nil || !strings.Contains(text, "name: default, namespace: shop}") {
		t.Errorf("%v\n%s\nwant the account of the target's namespace", err, text)
	}
}
