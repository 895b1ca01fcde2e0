// Package file resolves targets of the form
//
//	file:///path/to/endpoints.yaml[?cluster=CLUSTER&authority=NAME&…]
//
// to the endpoints in a file, and watches it: an edit reaches the calls within a
// second (with 100,000 endpoints, within about three). Importing the package registers the resolver and the policies it uses.
//
// The file is an envoy.config.endpoint.v3.ClusterLoadAssignment, what an xDS control
// plane sends for a cluster, in YAML or JSON with the names of protobuf's JSON form
// (lb_endpoints and lbEndpoints alike):
//
//	endpoints:
//	- locality: {region: us-east, zone: a}
//	  load_balancing_weight: 3
//	  lb_endpoints:
//	  - endpoint: {address: {socket_address: {address: 192.0.2.1, port_value: 443}}}
//	    load_balancing_weight: 2
//	- locality: {region: eu-west}
//	  priority: 1
//	  load_balancing_weight: 1
//	  lb_endpoints:
//	  - endpoint: {address: {socket_address: {address: 198.51.100.1, port_value: 443}}}
//
// If no locality of a priority has a weight, each counts as 1; otherwise one without
// weight, or with 0, gets no traffic, which the log says. The locality may be left
// out once per priority, and cluster_name, too.
//
// Or the file is a list of clusters, each an envoy.config.cluster.v3.Cluster, of which the
// target names one:
//
//	clusters:
//	- name: checkout
//	  cluster_type:
//	    name: envoy.clusters.aggregate
//	    typed_config:
//	      "@type": type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig
//	      clusters: [near, far]
//	- name: near
//	  type: STATIC
//	  load_assignment:
//	    endpoints:
//	    - lb_endpoints:
//	      - endpoint: {address: {socket_address: {address: 192.0.2.1, port_value: 443}}}
//	- name: far
//	  type: LOGICAL_DNS
//	  load_assignment:
//	    endpoints:
//	    - lb_endpoints:
//	      - endpoint: {address: {socket_address: {address: far.example.com, port_value: 443}}}
//
// The priorities of a cluster that an aggregate names are priorities of the channel, in
// order (gRFC A37): recursively up to 16 clusters on a way and 256 in all; a cluster that
// is named twice counts at its first place. Endpoints of type STATIC are in the file. Of
// STRICT_DNS each name stands for all its addresses, each with the weight of the name. Of
// LOGICAL_DNS there is one name. Those of type EDS come from the management servers of the
// xDS bootstrap (package eds). Names are looked up again as in a failover: target
// (refresh). A cluster that cannot be used is a priority without endpoints, with an error
// that names the way to it and its place in the file; the others go on. docs/xds.md says
// which fields of a cluster are read.
//
// A file that is wrong is logged once, with line and column of all that is wrong, and
// the endpoints before it stay in use. Before there has been a good one, calls fail
// with the error. What was in it stays in use also over a channel's idleness, for up to an
// hour. Files may be replaced by rename, which is best, by rewriting, or, as
// Kubernetes does with a ConfigMap, by a change of symbolic links.
//
// The channel's authority, which certificates are verified against, is NAME, or else
// CLUSTER, or else the name of the file without its extension; it never comes from the
// content. Where
// file names and certificates do not go together, give NAME. The other parameters are
// those of every target: docs/options.md.
package file
