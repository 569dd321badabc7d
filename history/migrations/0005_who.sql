-- +goose Up
-- Who gave the order of an event: null means that an older muster stored it and did not note that,
-- an empty text that nobody ordered it. It is the word of the event: the audit log proves orders.
alter table events add column who text;
-- A page of events of the whole house has the order of these.
create index events_at on events (at, zone, entry);
create index events_who on events (who, at, zone, entry) where who <> '';
create index events_unsaid on events (at) where who is null;
