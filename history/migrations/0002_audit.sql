-- +goose Up
-- The log that cannot be rewritten: docs/AUDIT.md. Rows of the entries, the hashes and the checkpoints
-- are added and never changed; of names and private parts the erasure takes texts away.

create table audit_tree (
  one  bigint not null primary key, -- there is one row: who appends locks it
  size bigint not null              -- entries
);
insert into audit_tree (one, size) values (1, 0);

create table audit_entries (
  seq       bigint not null primary key, -- from 0, without gaps
  id        text not null,
  leaf      text not null,   -- the bytes that are hashed
  signature text not null,   -- of a server; empty: it had no key
  -- Copies of what is in the leaf, to find entries by.
  at        bigint not null,
  who       text not null,
  verb      text not null,
  object    text not null,
  ends      text not null,   -- id of the entry whose outcome this is; empty: it is none
  -- Parts that can be erased: the leaf has a commitment to them.
  salt      text not null,
  origin    text not null,   -- address of the caller
  reason    text not null
);
create unique index audit_entries_id on audit_entries (id);
create index audit_entries_ends on audit_entries (ends) where ends <> '';
create index audit_entries_at on audit_entries (at);
create index audit_entries_who on audit_entries (who, seq);
create index audit_entries_verb on audit_entries (verb, seq);
create index audit_entries_object on audit_entries (object, seq);

create table audit_hashes (
  place bigint not null primary key, -- as RFC 6962 trees are stored by golang.org/x/mod/sumdb/tlog
  hash  bytea not null
);

create table audit_names (
  ref  text not null primary key,
  name text not null,               -- empty: erased
  salt text not null
);
create unique index audit_names_name on audit_names (name) where name <> '';

create table audit_checkpoints (
  size bigint not null primary key, -- entries of the tree then
  at   bigint not null,
  note text not null                -- signed
);

create table audit_sinks (
  sink        text not null primary key,
  entries     bigint not null, -- the next one to be sent
  checkpoints bigint not null, -- size of the last one that was sent
  at          bigint not null, -- when something was sent last
  since       bigint not null, -- when the present trouble began; 0: there is none
  trouble     text not null
);
