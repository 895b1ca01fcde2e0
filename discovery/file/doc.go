// Package file resolves targets of the form
//
//	file:///path/to/endpoints.yaml[?cluster=CLUSTER&authority=NAME&…]
//
// to the endpoints in a file, and watches the file. An edit reaches the calls within a
// second, or with 100,000 endpoints within about three. Importing the package registers
// the resolver and the policies it uses. A file is watched, read and parsed once in a
// process, however many channels use it.
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
// If no locality of a priority has a weight, each has the weight 1. Otherwise a
// locality without weight, or with weight 0, gets no traffic, and the log says so. One
// locality of each priority may lack its name, and the file its cluster_name.
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
// The priorities of the clusters that an aggregate names are priorities of the channel, in
// order (gRFC A37). Aggregates may name aggregates, up to 16 deep and 256 clusters in all.
// A cluster that is named twice counts at its first place. Endpoints of type STATIC are in
// the file. With STRICT_DNS each name stands for all its addresses, each with the weight
// of the name. LOGICAL_DNS has one name. Those of type EDS come from the management
// servers of the xDS bootstrap (package eds). Names are looked up again as in a failover:
// target (refresh). A cluster that cannot be used is a priority without endpoints, with an
// error that names the way to it and its place in the file; the others go on. docs/xds.md
// says which fields of a cluster are read.
//
// A file of more than 16 MiB, and one with mistakes, is rejected. It is logged once, with the line and column of each
// mistake, and the last good endpoints stay in use, also while a channel is idle, for up
// to an hour. Where there are none, calls fail with the error. A file that is there and
// cannot be read, such as where too many files are open, is tried again with gRPC's backoff.
//
// Files are best replaced by rename: what was moved to its place is read at once. What may
// have been written where it is may be a half of itself, in which a port is 844 in place of
// 8443, and is not used before its size and time have stood still for half a second. That
// becomes 2 seconds where the file is smaller than before, or ends in the middle of a line.
// It holds for a channel that begins, too, if the file is as fresh as that, and where links or
// directories on the way were changed, as Kubernetes does with a ConfigMap. The log says if a
// file has not stood still for 10 seconds.
//
// The channel's authority, which certificates are verified against, is NAME, or else
// CLUSTER, or else the name of the file without its extension. It never comes from the
// content. Where the certificates have another name, give NAME. The other parameters
// are those of every target: docs/options.md.
package file
