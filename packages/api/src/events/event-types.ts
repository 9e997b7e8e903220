// What handlers of HTTP need to know of events.

export { EVENT_TYPES, isByTime, isEventType, positionOf } from "@skerry/store";
