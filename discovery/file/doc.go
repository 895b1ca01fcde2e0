// Package file resolves targets of the form
//
//	file:///path/to/endpoints.yaml[?cluster=CLUSTER&authority=NAME&…]
//
// to the endpoints in a file, and watches the file. An edit takes effect within a second, or within
// about three seconds if the file has 100,000 endpoints. Importing the package registers the
// resolver and its policies. A file is watched, read and parsed once per process, however many
// channels use it.
//
// The file is an envoy.config.endpoint.v3.ClusterLoadAssignment, which is what an xDS control plane
// sends for a cluster, in YAML or JSON. Field names are those of protobuf's JSON form (lb_endpoints
// or lbEndpoints):
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
// If no locality of a priority has a weight, each has weight 1. Otherwise a locality without
// weight, or with weight 0, gets no traffic, and the log notes it. One locality of each priority
// may have no name, and the cluster_name may be omitted.
//
// Alternatively, the file is a list of clusters, each an envoy.config.cluster.v3.Cluster. The
// target names one of them:
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
// The priorities of an aggregate's clusters are priorities of the channel, in order (gRFC A37).
// Aggregates may contain aggregates, up to 16 levels deep and 256 clusters in total. A cluster that
// occurs twice counts at its first position. The endpoints of a cluster of type STATIC are in the
// file. With STRICT_DNS, each name is resolved to all its addresses, each of which has the weight
// of the name. A LOGICAL_DNS cluster has one name. Endpoints of type EDS come from the management
// servers of the xDS bootstrap (package eds). Names are refreshed as in a failover: target. An
// invalid cluster becomes a priority without endpoints, and the error names the path to the cluster
// and its position in the file; the other clusters stay in use. docs/xds.md lists the fields that
// are read.
//
// Files that Envoy's file subscription reads, with resources and their "@type", may be used as they
// are. Messages of other types in a cluster, such as a typed_config, have no effect.
//
// A file that is larger than 16 MiB or contains mistakes is rejected. The line and column of each
// mistake are logged once. The last good endpoints stay in use, and they are kept for up to an hour
// while a channel is idle. If there are no such endpoints, calls fail with the error. An existing
// file that cannot be read, for example because too many files are open, is tried again every half
// second.
//
// A file or a cluster that lists no endpoint is rejected, too, because it is usually a mistake of the
// program that writes the file. In a list, this concerns only the empty cluster. To take all
// endpoints out of use, set their health_status to DRAINING.
//
// Replace files by rename. A file that is being written in place may be incomplete, for example with
// a port 844 instead of 8443. A file is therefore read only when its size and time have not changed
// for half a second. Until then, a new channel uses the content that other channels use. This time is 2 seconds if the file ends in the middle of
// a line, or if a write has made it smaller. If a file keeps changing for 10 seconds, the log notes
// it.
//
// The channel's authority, against which certificates are verified, is NAME if it is set, otherwise
// CLUSTER if it is set, and otherwise the name of the file without its extension. The authority
// never comes from the content. If the certificates have another name, set NAME. docs/options.md
// lists the parameters of every target.
package file
