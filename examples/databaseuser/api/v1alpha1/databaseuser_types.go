package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TargetLabel says which operator, and so which database, serves a DatabaseUser. Its case does not matter.
const TargetLabel = "target"

// DatabaseUserSpec is what a user wants.
type DatabaseUserSpec struct {
	// User is the name to log in with. A MySQL server takes at most 32 characters. Not every name is possible: the Ready
	// condition says why.
	// +kubebuilder:validation:MaxLength=80
	// +optional
	User string `json:"user,omitempty"`

	// Password is in a Secret of the same namespace. When the Secret changes, so does the password; when it goes, the account
	// stays as it is.
	// +optional
	Password *corev1.SecretKeySelector `json:"password,omitempty"`

	// Hosts that the user may come from: names or addresses, in which % stands for any characters and _ for any one, or IPv4
	// networks such as 10.1.0.0/255.255.0.0. Default: all.
	// +kubebuilder:default={"%"}
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=255
	// +kubebuilder:validation:items:Pattern=`^([A-Za-z0-9._%:-]+|[0-9.]+/[0-9.]+)$`
	// +listType=set
	// +optional
	Hosts []string `json:"hosts,omitempty"`

	// Grants are what the user may do. Grants that were made by others stay.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	Grants []Grant `json:"grants,omitempty"`

	// Limits of what the user may use. Default: none.
	// +optional
	Limits Limits `json:"limits,omitzero"`

	// Require is what a connection has to bring along beside the password: nothing, TLS, or TLS with a certificate of the
	// client's. Default: none.
	// +kubebuilder:validation:Enum=none;ssl;x509
	// +kubebuilder:default=none
	// +optional
	Require Requirement `json:"require,omitempty"`

	// DeletionPolicy says whether the account goes when the DatabaseUser does. Default: Delete.
	// +kubebuilder:validation:Enum=Delete;Retain
	// +kubebuilder:default=Delete
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// Adopt takes over an account that is there and was not made for this DatabaseUser: its password, limits and
	// requirement are changed, and it goes with the DatabaseUser. One with privileges on the server as a whole is never
	// taken over. Default: such an account is left alone.
	// +optional
	Adopt bool `json:"adopt,omitempty"`
}

// Grant is what a user may do in a database, or in one of its tables.
//
// +kubebuilder:validation:XValidation:rule="!has(self.table) || !self.privileges.exists(p, p in ['CREATE TEMPORARY TABLES', 'LOCK TABLES', 'EXECUTE', 'CREATE ROUTINE', 'ALTER ROUTINE', 'EVENT'])",message="CREATE TEMPORARY TABLES, LOCK TABLES, EXECUTE, CREATE ROUTINE, ALTER ROUTINE and EVENT cannot be granted on a table"
// +kubebuilder:validation:XValidation:rule="!(self.database.lowerAscii() in ['mysql', 'information_schema', 'performance_schema', 'sys'])",message="this database belongs to the server"
type Grant struct {
	// Privileges to grant. ALL stands for all that are listed here, or those of them that a table has.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=19
	// +listType=set
	Privileges []Privilege `json:"privileges"`

	// Database in which they are granted: one, nothing in its name stands for others. It need not exist.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Database string `json:"database"`

	// Table in which they are granted; it has to exist. Default: all tables of the database.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Table string `json:"table,omitempty"`
}

// Privilege is one that concerns a database and what is in it. Granting on is not among them, nor is what concerns the
// server as a whole.
//
// +kubebuilder:validation:Enum=ALL;SELECT;INSERT;UPDATE;DELETE;CREATE;DROP;REFERENCES;INDEX;ALTER;CREATE TEMPORARY TABLES;LOCK TABLES;EXECUTE;CREATE VIEW;SHOW VIEW;CREATE ROUTINE;ALTER ROUTINE;EVENT;TRIGGER
type Privilege string

// Limits of what a user may use, from each host. Zero is no limit.
type Limits struct {
	// MaxUserConnections is how many connections there may be at once.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MaxUserConnections int32 `json:"maxUserConnections,omitempty"`

	// MaxConnectionsPerHour is how many connections may be opened in an hour.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MaxConnectionsPerHour int32 `json:"maxConnectionsPerHour,omitempty"`

	// MaxQueriesPerHour is how many statements may be run in an hour.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MaxQueriesPerHour int32 `json:"maxQueriesPerHour,omitempty"`

	// MaxUpdatesPerHour is how many statements may be run in an hour that change something.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MaxUpdatesPerHour int32 `json:"maxUpdatesPerHour,omitempty"`
}

// Requirement is what a connection has to bring along beside the password.
type Requirement string

// Requirements.
const (
	RequireNone Requirement = "none"
	RequireSSL  Requirement = "ssl"
	RequireX509 Requirement = "x509"
)

// DeletionPolicy says what becomes of the account when its DatabaseUser is deleted.
type DeletionPolicy string

// Deletion policies.
const (
	DeletionDelete DeletionPolicy = "Delete"
	DeletionRetain DeletionPolicy = "Retain"
)

// DatabaseUserStatus is what there is. User, hosts and target are written before an account is created: what is recorded
// here is ours.
type DatabaseUserStatus struct {
	// ObservedGeneration is the generation of the spec that this status tells of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// User is the name of the accounts that were made.
	// +optional
	User string `json:"user,omitempty"`

	// Hosts of the accounts that were made, sorted, in lower case.
	// +listType=atomic
	// +optional
	Hosts []string `json:"hosts,omitempty"`

	// Grants that were made, sorted, one for each database or table.
	// +listType=atomic
	// +optional
	Grants []AppliedGrant `json:"grants,omitempty"`

	// Target is the operator that made the accounts. It alone changes and drops them.
	// +optional
	Target string `json:"target,omitempty"`

	// PasswordVersion is the Secret that the password is from, as UID/resourceVersion.
	// +optional
	PasswordVersion string `json:"passwordVersion,omitempty"`

	// Conditions: Ready.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`
}

// AppliedGrant is a grant that was made. A later version may know other privileges, so it has no enumeration.
type AppliedGrant struct {
	// +listType=atomic
	Privileges []string `json:"privileges"`
	Database   string   `json:"database"`
	// +optional
	Table string `json:"table,omitempty"`
}

// Condition is an observation.
type Condition struct {
	// Type of the condition, such as Ready.
	Type string `json:"type"`

	// +kubebuilder:validation:Enum=True;False;Unknown
	Status metav1.ConditionStatus `json:"status"`

	// LastUpdateTime is when the reason or the message changed.
	// +optional
	LastUpdateTime metav1.Time `json:"lastUpdateTime,omitzero"`

	// LastTransitionTime is when the status changed.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitzero"`

	// Reason in one word. It has no pattern: an earlier operator wrote reasons with spaces.
	// +optional
	Reason string `json:"reason,omitempty"`

	// Message for people.
	// +optional
	Message string `json:"message,omitempty"`
}

// DatabaseUser is an account on a MariaDB or MySQL server.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=dbu
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:printcolumn:name=User,type=string,JSONPath=.spec.user
// +kubebuilder:printcolumn:name=Target,type=string,JSONPath=.metadata.labels.target
// +kubebuilder:printcolumn:name=Ready,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name=Reason,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name=Message,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=.metadata.creationTimestamp
type DatabaseUser struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec DatabaseUserSpec `json:"spec,omitzero"`
	// +optional
	Status DatabaseUserStatus `json:"status,omitzero"`
}

// DatabaseUserList is a list of DatabaseUsers.
//
// +kubebuilder:object:root=true
type DatabaseUserList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []DatabaseUser `json:"items"`
}
